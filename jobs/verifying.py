"""What must hold between business rows, their instances and the quota ledger (design 1.6, 7).

`of_intent`, `of_row` and `of_rounds` are pure; `verify` reads rows in pages by key, their instances
in one read a page, and looks again at whatever it found: row and instance are two databases, so one
look may fall between two writes that belong together.

Guarantees that nothing is written and that memory is bounded by one page. Leaves to others: the
instances themselves (`Kernel.verify`), the sums of the ledger (`jobs.services.quota`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobs.dispatch import DispatchMixin, DispatchStatus, dispatch_models
from jobs.dispatch.clock import db_now
from jobs.dispatch.states import NEXT_TURN_MAX
from jobs.models import ContentJob, JobStatus, QuotaEntry, QuotaState
from jobs.services import quota
from kernel import Finding, InstanceStatus, Kernel

_PAGE = 500
#: Status and round of an instance, each None where this version does not know what stands there;
#: None: there is no instance.
Standing = tuple[InstanceStatus | None, int | None] | None
#: Rounds of a job and what the ledger says of each.
Rounds = Mapping[int, str]

#: What the entry of a job's present round says while the job has this status.
ENTRY_OF: Mapping[str, str] = {
    JobStatus.INITIAL.value: QuotaState.RESERVED.value,
    JobStatus.GENERATING.value: QuotaState.RESERVED.value,
    JobStatus.READY.value: QuotaState.SETTLED.value,
    JobStatus.FAILED.value: QuotaState.REFUNDED.value,
    JobStatus.CANCELED.value: QuotaState.REFUNDED.value,
}


def of_intent(status: str | None, number: int, standing: Standing) -> list[str]:
    """Return what contradicts the outbox: a row's dispatch status and round, and its instance."""
    match status, standing:
        case DispatchStatus.DISPATCHED, None:
            return [f"round {number} is dispatched and has no instance"]
        case DispatchStatus.DISPATCHED, (_, int() as known) if known < number:
            return [f"round {number} is dispatched, its instance knows {known}"]
        case DispatchStatus.WITHDRAWN, (InstanceStatus() as known, _) if not known.is_terminal:
            return [f"is withdrawn and its instance is {known}"]
        case _:
            return []


def of_row(row: DispatchMixin, standing: Standing, now: datetime) -> list[str]:
    """Return what contradicts a row's intent and the end of its round; `now` is its database's."""
    number = row.dispatch_fencing_token or 0
    found = of_intent(row.dispatch_status, number, standing)
    status = getattr(row, row.dispatch_mapping.column)
    delivered = row.dispatch_status == DispatchStatus.DISPATCHED
    instance_status, known = standing or (None, None)
    over = instance_status is not None and instance_status.is_terminal and known == number
    if delivered and over and status not in row.dispatch_mapping.terminal:
        found.append(f"is {status} and its instance is {instance_status}")
    if (row.dispatch_next_at is None) != (row.dispatch_status not in _UNDELIVERED):
        found.append(f"is {row.dispatch_status} and its next turn is {row.dispatch_next_at}")
    if row.dispatch_next_at is not None and row.dispatch_next_at > now + NEXT_TURN_MAX:
        found.append(f"its next turn is {row.dispatch_next_at}, later than anything puts it off")
    return found


_UNDELIVERED = (DispatchStatus.PENDING, DispatchStatus.PROCESSING, DispatchStatus.WITHDRAWING)


def of_rounds(number: int, status: str, rounds: Rounds) -> list[str]:
    """Return what contradicts a job in round `number` in its entries of the ledger."""
    found = []
    if sorted(rounds) != list(range(1, number + 1)):
        found.append(f"is in round {number} and has ledger entries of {sorted(rounds)}")
    if rounds.get(number) != ENTRY_OF[status]:
        found.append(f"is {status} and its ledger entry is {rounds.get(number)}")
    if QuotaState.RESERVED in [state for n, state in rounds.items() if n != number]:
        found.append(f"has an open ledger entry of an older round: {dict(rounds)}")
    return found


def verify(
    kernel: Kernel,
    *,
    limit: int | None = None,
    on_page: Callable[[Counter[str]], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield what contradicts the invariants in business rows; `limit` bounds rows of each model.

    Raises:
        StoreUnavailable, DatabaseError: no answer; what was yielded before holds.
    """
    looked: Counter[str] = Counter()
    for model in dispatch_models():
        for keys in _pages(model, limit):
            found = _of_rows(kernel, model, keys)
            if found:
                still = set(_of_rows(kernel, model, [finding.subject for finding in found]))
                yield from (finding for finding in found if finding in still)
            looked[str(model._meta.verbose_name_plural)] += len(keys)
            on_page(looked)
    for one in quota.differences():
        fact = f"counts {one.counters} reserved and settled, its ledger says {one.entries}"
        yield Finding(subject=f"tenant {one.tenant}", invariant=6, fact=fact)


def _pages(model: type[DispatchMixin], limit: int | None) -> Iterator[list[Any]]:
    after, left = None, limit
    rows = model._default_manager.order_by("pk")
    while left is None or left > 0:
        size = _PAGE if left is None else min(_PAGE, left)
        page = rows if after is None else rows.filter(pk__gt=after)
        keys = list(page.values_list("pk", flat=True)[:size])
        if keys:
            yield keys
        if len(keys) < size:
            return
        after = keys[-1]
        left = None if left is None else left - len(keys)


def _of_rows(kernel: Kernel, model: type[DispatchMixin], keys: Collection[Any]) -> list[Finding]:
    wanted = model._default_manager.filter(pk__in=list(keys))
    rows: list[Any] = list(wanted.annotate(found_at=db_now()).order_by("pk"))
    # Rows first: an instance is older than the fact that it was dispatched.
    standings = kernel.rounds_of([row.dispatch_biz_key for row in rows if row.dispatch_biz_key])
    found = [
        _finding(row, 1, fact)
        for row in rows
        for fact in of_row(row, standings.get(row.dispatch_biz_key or ""), row.found_at)
    ]
    if model is not ContentJob:
        return found
    ledger = _ledger(rows)
    return found + [
        _finding(job, 6, fact)
        for job in rows
        if isinstance(job, ContentJob)
        for fact in of_rounds(job.round, job.status, ledger[job.pk])
    ]


def _ledger(rows: Sequence[DispatchMixin]) -> Mapping[str, Rounds]:
    entries: dict[str, dict[int, str]] = defaultdict(dict)
    found = QuotaEntry.objects.filter(job_id__in=[row.pk for row in rows])
    for job_id, number, state in found.values_list("job_id", "round", "state"):
        entries[job_id][number] = state
    return entries


def _finding(row: DispatchMixin, invariant: int, fact: str) -> Finding:
    return Finding(
        subject=str(row.pk),
        invariant=invariant,
        fact=fact,
        biz_key=row.dispatch_biz_key or "",
        status=str(getattr(row, row.dispatch_mapping.column)),
    )
