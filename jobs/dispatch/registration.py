"""The calls to the kernel behind an intent: register a round, end a generation.

Guarantees: both may be repeated any number of times; the old generation is ended before the new
one starts. Leaves to others: what the row says afterwards (`relay`, `recovery`).
"""

from collections.abc import Sequence

from jobs.dispatch.intent import Intent
from kernel import Kernel, Plan, Priority, StartItem, StartResult, UnknownWorkflow

#: Instance statuses in which nothing of it runs any more.
ENDED = frozenset({"completed", "failed", "canceled"})


class StillEnding(Exception):
    """The older generation's finalizer still runs; the new one has to wait for it."""


def register(kernel: Kernel, intent: Intent, *, timeout: float) -> StartResult:
    """Bring one round to `start_or_resume`; `timeout` is seconds for the kernel's answer.

    Raises:
        StillEnding: the generation it supersedes has not ended yet.
        UnknownWorkflow: the model no longer has a plan of the stored type.
        KernelError: as `start_or_resume`.
    On repeat: the same answer, or the current one; never a second instance (I2).
    """
    if intent.supersedes is not None and not end_generation(
        kernel, intent.supersedes, reason=f"superseded by {intent.biz_key}", timeout=timeout
    ):
        raise StillEnding(f"the older generation {intent.supersedes} is still ending")
    return kernel.start_or_resume(
        _plan(intent),
        biz_key=intent.biz_key,
        input=intent.input,
        fencing_token=intent.fencing_token,
        priority=Priority(intent.priority),
        timeout=timeout,
    )


def register_page(
    kernel: Kernel, intents: Sequence[Intent], *, timeout: float
) -> list[StartResult]:
    """Bring rounds of one type that end no older generation to the kernel, in one call.

    Raises:
        UnknownWorkflow: the model no longer has a plan of the stored type.
        KernelError: as `start_many`; a bad one among them refuses all.
    On repeat: as `register`, for each.
    """
    if not intents:
        return []
    items = [
        StartItem(one.biz_key, one.input, one.fencing_token, Priority(one.priority))
        for one in intents
    ]
    return kernel.start_many(_plan(intents[0]), items, timeout=timeout)


def end_generation(kernel: Kernel, biz_key: str, *, reason: str, timeout: float) -> bool:
    """Supersede the instance of a generation. True: there is none, or it has ended.

    False: its failure finalizer still runs and ends it by itself; ask again later. `timeout` is
    seconds for each of the kernel's answers.
    """
    instance = kernel.find(biz_key=biz_key, timeout=timeout)
    if instance is None or instance.status in ENDED:
        return True
    if kernel.supersede(instance.workflow_id, reason=reason, timeout=timeout):
        return True
    again = kernel.find(biz_key=biz_key, timeout=timeout)
    return again is None or again.status in ENDED


def end_all(kernel: Kernel, intent: Intent, *, reason: str, timeout: float) -> bool:
    """End the intent's generation and the one it was to supersede. True: nothing of either runs.

    The older one may still run when its successor is withdrawn before it was ever registered.
    """
    keys = [intent.biz_key] if intent.supersedes is None else [intent.biz_key, intent.supersedes]
    ended = [end_generation(kernel, key, reason=reason, timeout=timeout) for key in keys]
    return all(ended)


def _plan(intent: Intent) -> Plan:
    for plan in intent.model.dispatch_plans:
        if plan.type == intent.type:
            return plan
    raise UnknownWorkflow(
        f"{intent.model._meta.label} has no plan of type {intent.type!r} any more; "
        "add it to dispatch_plans, or cancel the object"
    )
