"""Business models on the console.

Guarantees: nothing here writes a business row or an intent's column by itself: jobs can be looked
at, retried and canceled through ``jobs.services`` only; tokens can be issued, seen once, and
revoked. Leaves to others: workflows themselves (the console's own pages).
"""

# ruff: noqa: ARG002 -- the arguments are those of Django's hooks
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from jobs.counted import counted
from jobs.models import ApiToken, ContentJob
from jobs.services import access, content
from jobs.services.errors import InvalidRequest, ServiceError
from ops_console import accounts
from ops_console.shown import WholeRow

# Django looks for admins in this module only.
__all__ = ["ApiTokenAdmin", "ContentJobAdmin", "accounts"]

#: Refusals listed one by one after an action; the rest is counted.
REFUSALS_SHOWN = 10


if TYPE_CHECKING:
    # Django's classes take no parameters at run time.
    JobAdmin = admin.ModelAdmin[ContentJob]
    TokenAdmin = admin.ModelAdmin[ApiToken]
else:
    JobAdmin = TokenAdmin = admin.ModelAdmin


@admin.register(ContentJob)
class ContentJobAdmin(WholeRow, JobAdmin):
    """Jobs, read-only; two actions that go through the services."""

    list_display = ("id", "tenant", "kind", "status", "round", "dispatch_status", "created_at")
    list_filter = ("status", "kind", "dispatch_status", "created_at")
    search_fields = ("id", "tenant", "source_url", "dispatch_biz_key")
    ordering = ("-created_at", "-id")
    actions = ("retry_jobs", "cancel_jobs")
    list_per_page = 50
    # An exact count of a large table would cost more than the page.
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs come through the API."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ContentJob | None = None) -> bool:
        """Rows are never edited here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ContentJob | None = None) -> bool:
        """A job is canceled, never deleted from here."""
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this user may retry and cancel."""
        user: Any = request.user
        return bool(user.has_perm("jobs.change_contentjob"))

    @admin.action(description="Retry the failed jobs among the selected", permissions=["operate"])
    def retry_jobs(self, request: HttpRequest, queryset: QuerySet[ContentJob]) -> None:
        """Start a new round of each failed job."""
        self._each(request, queryset, content.retry_job, "accepted for retry")

    @admin.action(description="Cancel the selected jobs", permissions=["operate"])
    def cancel_jobs(self, request: HttpRequest, queryset: QuerySet[ContentJob]) -> None:
        """End each job that is still open."""
        self._each(request, queryset, content.cancel_job, "canceled")

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[ContentJob],
        service: Callable[[str, str], ContentJob],
        done: str,
    ) -> None:
        accepted, refused = 0, []
        for tenant, job_id in queryset.values_list("tenant", "id"):
            try:
                service(tenant, job_id)
            except ServiceError as error:
                refused.append(f"{job_id}: {error}")
            else:
                accepted += 1
        if accepted:
            self.message_user(request, f"{counted(accepted, 'job')} {done}.", messages.SUCCESS)
        for line in refused[:REFUSALS_SHOWN]:
            self.message_user(request, f"Refused: {line}", messages.WARNING)
        if len(refused) > REFUSALS_SHOWN:
            rest = len(refused) - REFUSALS_SHOWN
            were = "was" if rest == 1 else "were"
            self.message_user(request, f"{rest} more {were} refused.", messages.WARNING)


@admin.register(ApiToken)
class ApiTokenAdmin(TokenAdmin):
    """API tokens: issue one, see it once, revoke it."""

    # Commands and the history of limits name a token by its number.
    list_display = (
        *("name", "id", "tenant", "ops", "user", "created_at", "expires_at", "last_used_at"),
        "alive",
    )
    list_filter = ("tenant", "ops", "revoked_at")
    search_fields = ("name", "tenant", "user__username")
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        """Ask for what a new token needs; show everything but the hash of one that is there."""
        asked = ["name", "tenant", "user", "expires_at"]
        if obj is None:
            return asked
        return ["id", "ops", *asked, "created_at", "last_used_at", "revoked_at"]

    @admin.display(boolean=True, description="alive")
    def alive(self, token: ApiToken) -> bool:
        """Tell whether the token has not been revoked."""
        return token.revoked_at is None

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """A token is revoked and issued anew, never edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """A token is revoked, so that its use stays on record."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Tell whether this user may revoke tokens."""
        user: Any = request.user
        return bool(user.has_perm("jobs.change_apitoken"))

    def get_form(
        self,
        request: HttpRequest,
        obj: ApiToken | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> type[ModelForm[ApiToken]]:
        """Build the form of the add page with the service's own rules."""
        form = super().get_form(request, obj, change=change, **kwargs)
        if obj is None:
            form.clean = _clean  # type: ignore[method-assign,assignment]
        return form

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: ModelForm[ApiToken], change: bool
    ) -> None:
        """Issue the token and show its text this once."""
        issued = access.issue_token(
            user=obj.user, tenant=obj.tenant, name=obj.name, expires_at=obj.expires_at
        )
        # The page goes on with the row that the service made.
        obj.pk = issued.token.pk
        obj.refresh_from_db()
        text = f"Token, shown only now; copy it: {issued.raw}"
        self.message_user(request, text, messages.WARNING)

    @admin.action(description="Revoke the selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """End each token at once."""
        ended = sum(access.revoke_token(pk) for pk in queryset.values_list("pk", flat=True))
        self.message_user(request, f"{counted(ended, 'token')} revoked.", messages.SUCCESS)


def _clean(form: ModelForm[ApiToken]) -> dict[str, Any]:
    values: dict[str, Any] = form.cleaned_data
    try:
        access.check_token(tenant=values.get("tenant", ""), expires_at=values.get("expires_at"))
    except InvalidRequest as error:
        for problem in error.problems:
            field = problem.pointer.removeprefix("/")
            form.add_error(field if field in form.fields else None, problem.detail)
    return values
