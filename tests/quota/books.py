"""What the ledger must say of a tenant's jobs, at any moment.

Guarantees: looks at stored rows only. Leaves to the caller when to look.
"""

from collections import defaultdict
from collections.abc import Iterator

from jobs.models import ContentJob, QuotaEntry
from jobs.services import quota

#: What a round's entry says while the job has this status in that round.
STATE_OF = {
    "initial": "reserved",
    "generating": "reserved",
    "ready": "settled",
    "failed": "refunded",
    "canceled": "refunded",
}


def of_books(tenant: str) -> Iterator[str]:
    """Say where a tenant's ledger contradicts its jobs or its counters."""
    entries: dict[str, dict[int, str]] = defaultdict(dict)
    for job_id, number, state in QuotaEntry.objects.filter(tenant=tenant).values_list(
        "job_id", "round", "state"
    ):
        entries[job_id][number] = state
    for job in ContentJob.objects.filter(tenant=tenant):
        yield from _of_job(job, entries.pop(job.pk, {}))
    for job_id, rounds in entries.items():
        if "reserved" in rounds.values():
            yield f"{job_id} is gone and has {rounds}"
    yield from (str(found) for found in quota.differences() if found.tenant == tenant)


def _of_job(job: ContentJob, rounds: dict[int, str]) -> Iterator[str]:
    if sorted(rounds) != list(range(1, job.round + 1)):
        yield f"{job.pk} is in round {job.round} and has entries of {sorted(rounds)}"
    if rounds.get(job.round) != STATE_OF[job.status]:
        yield f"{job.pk} is {job.status} and its entry {rounds.get(job.round)}"
    if "reserved" in [state for number, state in rounds.items() if number != job.round]:
        yield f"{job.pk} has an open entry of an older round: {rounds}"
