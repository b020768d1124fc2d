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


def home(_request: HttpRequest) -> HttpResponse:
    """Send people who type the bare address to the console."""
    return redirect("admin:index")


urlpatterns = [
    path("", home, name="home"),
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
