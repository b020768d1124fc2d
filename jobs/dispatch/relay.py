"""The request path: carry a committed intent to the kernel at once, if that is quick.

Overview: runs after the commit (`transaction.on_commit`, robust). The answer to the client already
follows from the committed row, so nothing here may change it, fail it or make it wait: one call to
the kernel is bounded in time, a breaker skips it while the kernel's store is away, and every error
is only logged. Whatever is not done here is done by recovery.

Authority: this path acts for the round it was created with, and for no other. When its confirm
misses it reads the row again: confirmed by somebody else or replaced by another round means nothing
is left to do; canceled or gone means that what was just registered has to be ended.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from jobs.dispatch.breaker import Breaker
from jobs.dispatch.intent import Intent
from jobs.dispatch.registration import StillEnding, end_all, end_generation, register
from jobs.dispatch.states import REQUEST_TIMEOUT_SECONDS, DispatchStatus
from jobs.dispatch.transitions import confirm, rows, withdrawn
from kernel import Kernel, Unavailable

log = structlog.get_logger(__name__)
breaker = Breaker()


def publish(intent: Intent) -> None:
    """Register the round and confirm it. Never raises. On repeat: changes nothing."""
    _quietly(intent, _register_and_confirm)


def withdraw(intent: Intent) -> None:
    """End the generation of a canceled object. Never raises. On repeat: changes nothing."""
    _quietly(intent, _end_and_close)


def settle_missed_confirm(kernel: Kernel, intent: Intent) -> None:
    """Deal with a registration whose confirm matched nothing; used by recovery too.

    The row's round does not matter for a withdrawn generation: nothing of it may run.
    """
    status = (
        rows(intent.model)
        .filter(pk=intent.pk, dispatch_biz_key=intent.biz_key)
        .values_list("dispatch_status", flat=True)
        .first()
    )
    if status not in {None, DispatchStatus.WITHDRAWING, DispatchStatus.WITHDRAWN}:
        return
    reason = "the business object was canceled or deleted"
    if end_generation(kernel, intent.biz_key, reason=reason, timeout=REQUEST_TIMEOUT_SECONDS):
        withdrawn(intent)


def _register_and_confirm(kernel: Kernel, intent: Intent) -> None:
    result = register(kernel, intent, timeout=REQUEST_TIMEOUT_SECONDS)
    if not result.accepted:
        log.info("dispatch_left_to_recovery", biz_key=intent.biz_key, reason=result.reason)
        return
    if not confirm(intent):
        settle_missed_confirm(kernel, intent)


def _end_and_close(kernel: Kernel, intent: Intent) -> None:
    reason = "the business object was canceled"
    if end_all(kernel, intent, reason=reason, timeout=REQUEST_TIMEOUT_SECONDS):
        withdrawn(intent)


def _quietly(intent: Intent, action: Callable[[Kernel, Intent], None]) -> None:
    if not breaker.allows():
        log.info("dispatch_left_to_recovery", biz_key=intent.biz_key, reason="breaker_open")
        return
    from jobs.runtime import get_kernel

    try:
        action(get_kernel(), intent)
    except Unavailable as exc:
        breaker.failed()
        log.warning("dispatch_left_to_recovery", biz_key=intent.biz_key, reason=str(exc))
    except StillEnding as exc:
        log.info("dispatch_left_to_recovery", biz_key=intent.biz_key, reason=str(exc))
    except Exception:
        # The client has its answer; recovery will meet the same error and keep it in the row.
        log.exception(
            "dispatch_left_to_recovery", biz_key=intent.biz_key, reason="unexpected error"
        )
    else:
        breaker.succeeded()
