"""The console's admin site.

Guarantees: one site for business models and users, titled for operators; the address of a row may
hold its id as it is. Leaves to others: which models are on it (``ops_console.admin``).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import quote, unquote
from django.http import HttpRequest, HttpResponse

View = Callable[..., HttpResponse]


class OpsSite(AdminSite):
    """The admin site at ``/ops/``."""

    site_header = "Baton operations"
    site_title = "Baton"
    index_title = "What runs, and for whom"
    empty_value_display = "–"
    # The site is the console: "View site" would lead from it to itself.
    site_url = None

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Guard a view as the admin does, and let it find rows by raw ids."""
        return super().admin_view(_with_raw_ids(view), cacheable)


def _with_raw_ids(view: View) -> View:
    """Let a view of one row take its id also as people paste it.

    The admin writes ``job_1`` as ``job_5F1`` in its addresses, and reads ``ntf_26…`` as ``ntf&…``.
    An id that names no row when read that way is taken as it stands. Where both readings name a row
    the admin's own is the one, for its links are made of it.
    """
    owner = getattr(view, "__self__", None)
    if not isinstance(owner, ModelAdmin):
        return view

    @wraps(view)
    def found(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        typed = kwargs.get("object_id")
        if typed and unquote(typed) != typed and owner.get_object(request, unquote(typed)) is None:
            kwargs["object_id"] = quote(typed)
        return view(request, *args, **kwargs)

    return found
