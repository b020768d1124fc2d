"""Quotas, their ledger and notifications on the console.

Guarantees: nothing here writes a row by itself: quotas and ledger are read-only (`manage.py quota`
sets a limit), a failed notification can be tried again through its service. Leaves to others: jobs
and tokens (``ops_console.admin``).
"""

# ruff: noqa: ARG002 -- the arguments are those of Django's hooks
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.counted import counted
from jobs.models import Notification, QuotaEntry, TenantQuota
from jobs.services import notifications
from jobs.services.errors import ServiceError
from ops_console.shown import WholeRow

if TYPE_CHECKING:
    # Django's classes take no parameters at run time.
    QuotaModelAdmin = admin.ModelAdmin[TenantQuota]
    EntryModelAdmin = admin.ModelAdmin[QuotaEntry]
    NotificationModelAdmin = admin.ModelAdmin[Notification]
else:
    QuotaModelAdmin = EntryModelAdmin = NotificationModelAdmin = admin.ModelAdmin


class _ReadOnly(WholeRow):
    """Nobody adds, changes or deletes a row."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows come with the work."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows change with the work."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows stay on record."""
        return False


@admin.register(TenantQuota)
class TenantQuotaAdmin(_ReadOnly, QuotaModelAdmin):
    """Limits and counters."""

    list_display = ("tenant", "limit", "reserved", "settled", "updated_at")
    search_fields = ("tenant",)
    ordering = ("tenant",)


@admin.register(QuotaEntry)
class QuotaEntryAdmin(_ReadOnly, EntryModelAdmin):
    """The ledger, newest first."""

    list_display = ("job_id", "round", "tenant", "state", "created_at", "decided_at")
    list_filter = ("state", "created_at")
    search_fields = ("job_id", "tenant")
    ordering = ("-pk",)
    show_full_result_count = False


@admin.register(Notification)
class NotificationAdmin(_ReadOnly, NotificationModelAdmin):
    """Notifications, with one action that goes through the service."""

    list_display = ("id", "tenant", "status", "answer", "error_code", "created_at", "finished_at")
    list_filter = ("status", "created_at")
    search_fields = ("id", "tenant", "job__id")
    ordering = ("-created_at", "-id")
    actions = ("redeliver",)
    show_full_result_count = False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this user may try notifications again."""
        user: Any = request.user
        return bool(user.has_perm("jobs.change_notification"))

    @admin.action(
        description="Try the failed ones among the selected again", permissions=["operate"]
    )
    def redeliver(self, request: HttpRequest, queryset: QuerySet[Notification]) -> None:
        """Start a new round of each failed notification."""
        again = refused = 0
        for tenant, pk in queryset.values_list("tenant", "id"):
            try:
                notifications.redeliver(tenant, pk)
            except ServiceError:
                refused += 1
            else:
                again += 1
        if again:
            are = "is" if again == 1 else "are"
            text = f"{counted(again, 'notification')} {are} tried again."
            self.message_user(request, text, messages.SUCCESS)
        if refused:
            have = "has" if refused == 1 else "have"
            text = f"{counted(refused, 'notification')} {have} not failed."
            self.message_user(request, text, messages.WARNING)
