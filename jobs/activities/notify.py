"""The step of `content.notify`, and its two ends.

Guarantees: every attempt sends the bytes that were stored with the end of the round, under the same
id. A receiver may see them more than once: when its answer got lost. Leaves to others: how often to
try (`jobs.workflows.notify`).
"""

import json
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from jobs.models import Notification, NotificationStatus
from jobs.notifying import WebhookSender
from jobs.plans import NotifyInput
from jobs.ports import PortCancelled
from jobs.ports.notification import Notifier
from jobs.services import notifications
from kernel import ActivityContext, FinalizerContext, WorkflowCanceled


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyPorts:
    """Who carries notifications."""

    notifier: Notifier


def notify_ports_from_settings() -> NotifyPorts:
    """Build the sender the settings ask for."""
    return NotifyPorts(
        notifier=WebhookSender(
            keys=[settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)],
            allow_private=settings.BATON_FETCH_ALLOW_PRIVATE,
        )
    )


def deliver(ctx: ActivityContext) -> dict[str, Any]:
    """Send the notification.

    Raises:
        WorkflowCanceled: it is gone, or nobody waits for it any more.
        NotifyRefused, NotifyFailedForNow: as the port says.
    On repeat: sends the same bytes again; the receiver knows them by their id.
    """
    request, ports = ctx.input, ctx.ports
    assert isinstance(request, NotifyInput), "the plan names its input model"
    assert isinstance(ports, NotifyPorts), "the definition names its ports"
    row = _waiting(request.notification_id, ctx.fencing_token)
    try:
        answer = ports.notifier.send(
            row.url,
            json.dumps(row.body, ensure_ascii=True, separators=(",", ":")).encode(),
            message_id=row.pk,
            tenant=row.tenant,
            deadline=ctx.deadline,
            cancelled=ctx.cancelled,
        )
    except PortCancelled:
        ctx.raise_if_cancelled()
        raise
    return {"answer": answer}


def delivered(ctx: FinalizerContext) -> None:
    """Success finalizer: note the receiver's answer. On repeat, or when it is over: nothing."""
    request = NotifyInput.model_validate(ctx.input)
    answer = ctx.outputs["deliver"]["answer"]
    notifications.finish_delivered(request.notification_id, ctx.fencing_token, answer=answer)


def given_up(ctx: FinalizerContext) -> None:
    """Failure finalizer: note why nothing got through. On repeat, or when it is over: nothing."""
    request = NotifyInput.model_validate(ctx.input)
    error = ctx.error or {}
    notifications.finish_failed(
        request.notification_id,
        ctx.fencing_token,
        code=str(error.get("code") or "failed"),
        message=str(error.get("message") or "The notification could not be delivered."),
    )


def _waiting(pk: str, fencing_token: int) -> Notification:
    row = notifications.find(pk)
    if (
        row is None
        or row.dispatch_fencing_token != fencing_token
        or row.status != NotificationStatus.WAITING
    ):
        raise WorkflowCanceled("the notification is gone, or over")
    return row
