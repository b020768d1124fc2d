"""What the ledger must say of a tenant's jobs, at any moment.

Guarantees: looks at stored rows only. Leaves to the caller when to look.
"""

from collections import defaultdict
from collections.abc import Iterator

from jobs.models import ContentJob, QuotaEntry
from jobs.services import quota
from jobs.verifying import of_rounds


def of_books(tenant: str) -> Iterator[str]:
    """Say where a tenant's ledger contradicts its jobs or its counters."""
    entries: dict[str, dict[int, str]] = defaultdict(dict)
    for job_id, number, state in QuotaEntry.objects.filter(tenant=tenant).values_list(
        "job_id", "round", "state"
    ):
        entries[job_id][number] = state
    for job in ContentJob.objects.filter(tenant=tenant):
        rounds = entries.pop(job.pk, {})
        yield from (f"{job.pk} {fact}" for fact in of_rounds(job.round, job.status, rounds))
    for job_id, rounds in entries.items():
        if "reserved" in rounds.values():
            yield f"{job_id} is gone and has {rounds}"
    yield from (str(found) for found in quota.differences() if found.tenant == tenant)
