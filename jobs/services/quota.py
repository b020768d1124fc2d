"""The quota ledger: what a round reserves, and whether it is settled or refunded.

    (no entry) ──round installed──▶ reserved ──ready──▶ settled
                                       └──failed, canceled, refused for good──▶ refunded

Each change happens in the database transaction of the status change that causes it, so no crash,
replay, cancel or late worker leaks or doubles it; an entry moves once and never back. The tenant's
counters change with the entry. Rows are always locked in the order job, entry, counters.

Guarantees: over its limit a tenant gets no round, decided by one conditional update; a tenant
nobody set a limit for is counted and not limited. Leaves to others: calling it in the right
transaction (`jobs.services.content`, `jobs.services.rounds`). Design 7.
"""

from dataclasses import dataclass

from django.db import router, transaction
from django.db.models import Count, F, Q

from jobs.dispatch.clock import db_now
from jobs.models import QuotaEntry, QuotaState, TenantQuota
from jobs.services.errors import QuotaExceeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A tenant's quota as it stands."""

    tenant: str
    #: Rounds reserved and settled together may not exceed it; None is unlimited.
    limit: int | None
    reserved: int
    settled: int

    @property
    def available(self) -> int | None:
        """Rounds that may still be asked for; None is unlimited."""
        return None if self.limit is None else max(0, self.limit - self.reserved - self.settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A tenant whose counters are not the sum of its ledger."""

    tenant: str
    #: (reserved, settled) as counted, and as the entries say.
    counters: tuple[int, int]
    entries: tuple[int, int]


def reserve(tenant: str, job_id: str, job_round: int) -> None:
    """Reserve a round that is being installed in the surrounding transaction.

    Raises:
        QuotaExceeded: the tenant's limit is reached; the caller's transaction must be given up.
        IntegrityError: the round has its entry already.
    """
    _must_be_in_a_transaction()
    QuotaEntry.objects.create(tenant=tenant, job_id=job_id, round=job_round)
    if _count_one_more(tenant):
        return
    # No counters yet, or the limit is reached.
    TenantQuota.objects.bulk_create([TenantQuota(tenant=tenant)], ignore_conflicts=True)
    if not _count_one_more(tenant):
        standing = standing_of(tenant)
        raise QuotaExceeded(
            tenant, limit=standing.limit or 0, used=standing.reserved + standing.settled
        )


def settle(job_id: str, job_round: int) -> bool:
    """Keep what a round reserved: it ended ready. On repeat, or without an entry: False."""
    return _decide(job_id, job_round, QuotaState.SETTLED)


def refund(job_id: str, job_round: int) -> bool:
    """Give back what a round reserved: it came to nothing. On repeat, or without an entry: False.

    A settled round stays settled.
    """
    return _decide(job_id, job_round, QuotaState.REFUNDED)


def set_limit(tenant: str, limit: int | None) -> Standing:
    """Set how many rounds a tenant may have reserved and settled; None takes the limit away.

    A limit below what is used already refuses new rounds and ends none. On repeat: the same.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"a limit is zero or more, not {limit}")
    with transaction.atomic():
        TenantQuota.objects.bulk_create([TenantQuota(tenant=tenant)], ignore_conflicts=True)
        TenantQuota.objects.filter(tenant=tenant).update(limit=limit, updated_at=db_now())
    return standing_of(tenant)


def standing_of(tenant: str) -> Standing:
    """Read a tenant's quota; one nobody has heard of is unlimited and has used nothing."""
    row = TenantQuota.objects.filter(tenant=tenant).first() or TenantQuota(tenant=tenant)
    return _standing(row)


def standings() -> list[Standing]:
    """Read every tenant's quota, by name."""
    return [_standing(row) for row in TenantQuota.objects.order_by("tenant")]


def differences() -> list[Difference]:
    """Compare counters and ledger in one snapshot; empty unless something wrote past this module.

    Raises nothing and repairs nothing.
    """
    with transaction.atomic():
        sums = {
            row["tenant"]: (row["reserved"], row["settled"])
            for row in QuotaEntry.objects.values("tenant").annotate(
                reserved=Count("pk", filter=Q(state=QuotaState.RESERVED)),
                settled=Count("pk", filter=Q(state=QuotaState.SETTLED)),
            )
        }
        counters = {
            row.tenant: (row.reserved, row.settled)
            for row in TenantQuota.objects.select_for_update()
        }
    return [
        Difference(
            tenant=tenant,
            counters=counters.get(tenant, (0, 0)),
            entries=sums.get(tenant, (0, 0)),
        )
        for tenant in sorted({*sums, *counters})
        if counters.get(tenant, (0, 0)) != sums.get(tenant, (0, 0))
    ]


def _count_one_more(tenant: str) -> bool:
    within = Q(limit__isnull=True) | Q(limit__gt=F("reserved") + F("settled"))
    counters = TenantQuota.objects.filter(within, tenant=tenant)
    return counters.update(reserved=F("reserved") + 1, updated_at=db_now()) == 1


def _decide(job_id: str, job_round: int, state: QuotaState) -> bool:
    _must_be_in_a_transaction()
    entry = QuotaEntry.objects.filter(job_id=job_id, round=job_round)
    if not entry.filter(state=QuotaState.RESERVED).update(state=state, decided_at=db_now()):
        return False
    tenant = entry.values_list("tenant", flat=True).get()
    TenantQuota.objects.filter(tenant=tenant).update(
        reserved=F("reserved") - 1,
        settled=F("settled") + (1 if state == QuotaState.SETTLED else 0),
        updated_at=db_now(),
    )
    return True


def _must_be_in_a_transaction() -> None:
    connection = transaction.get_connection(router.db_for_write(QuotaEntry))
    assert connection.in_atomic_block, "the ledger changes with the status that causes it"


def _standing(row: TenantQuota) -> Standing:
    return Standing(tenant=row.tenant, limit=row.limit, reserved=row.reserved, settled=row.settled)
