"""Every URL of the web process, in one screen.

Guarantees: whatever is asked below ``/api/`` is answered as problem+json, also where no route
matches. Leaves to others: the API (``jobs.api``) and the console (``ops_console``).
"""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import include, path, re_path

from jobs.api import health, pages
from jobs.api.errors import problem_404, problem_500

#: A baton on its way to the next hand.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<path d="M3 13 13 3" stroke="#417690" stroke-width="5" stroke-linecap="round"/></svg>'
)


def home(_request: HttpRequest) -> HttpResponse:
    """Send people who type the bare address to the console."""
    return redirect("admin:index")


def icon(_request: HttpRequest) -> HttpResponse:
    """Give browsers the little picture they ask every site for."""
    return HttpResponse(
        _ICON, content_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"}
    )


urlpatterns = [
    path("", home, name="home"),
    path("favicon.ico", icon, name="icon"),
    path("api/v1/", include("jobs.api.urls")),
    re_path(r"^api(/.*)?$", problem_404),
    path("problems/", pages.problem_index, name="problem-index"),
    path("problems/<slug:slug>", pages.problem_page, name="problem-page"),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    path("ops/", admin.site.urls),
]
handler404 = problem_404
handler500 = problem_500
