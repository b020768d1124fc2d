"""How often a tenant may call: one bucket a tenant, emptied by calls and filled by time.

Guarantees: over all processes a tenant gets at most a full bucket at once and the rate on average,
because tokens leave the bucket by one conditional UPDATE on the database's clock. A process takes
a few tokens at a time and spends them within `HELD_SECONDS`, so most calls write nothing.
Leaves to others: who asks and what a refusal looks like (`jobs.api.throttling`).

The bucket is one moment, `full_at`: taking n tokens moves it n intervals ahead, and it may lie at
most a bucket's worth of intervals in the future.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, router, transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, Value
from django.db.models.functions import Greatest

from jobs.dispatch.clock import db_now
from jobs.models import TenantBucket

#: Tokens a process takes at once, at most; few, because unspent ones are lost.
TAKEN_AT_ONCE_MAX = 10
#: How long a process keeps tokens it took, seconds.
HELD_SECONDS = 1.0
#: Tenants a process keeps tokens of; beyond that it forgets those of all.
_TENANTS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`calls` in `seconds`: the size of the bucket, and the time to fill it."""

    calls: int
    seconds: int

    @property
    def interval(self) -> timedelta:
        """The time in which one token comes back."""
        return timedelta(seconds=self.seconds) / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a call may pass, and what its tenant has left."""

    allowed: bool
    rate: Rate
    #: Calls left in the bucket, as far as this process knows.
    left: int
    #: Seconds until the bucket is full (allowed), or until one more call may pass (refused).
    wait_seconds: float


@dataclass(slots=True)
class _Held:
    """Tokens of one tenant that this process has taken out of the bucket."""

    tokens: int
    #: Left in the bucket itself when these were taken.
    left: int
    full_in: float
    until: float


class Limiter:
    """The buckets as one process sees them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    def check(self, tenant: str, rate: Rate) -> Verdict:
        """Take one token of a tenant. On repeat: another token."""
        spent = self._spend(tenant, rate)
        if spent is not None:
            return spent
        wanted = max(1, min(TAKEN_AT_ONCE_MAX, rate.calls // 50))
        # Nearly empty buckets give single tokens, so that the last ones are not lost.
        for tokens in (wanted, 1) if wanted > 1 else (1,):
            full_in = _take(tenant, rate, tokens)
            if full_in is not None:
                return self._keep(tenant, rate, tokens, full_in)
        full_in = _full_in(tenant)
        step = rate.interval.total_seconds()
        wait = max(0.0, full_in - (rate.calls - 1) * step)
        return Verdict(allowed=False, rate=rate, left=0, wait_seconds=wait)

    def _spend(self, tenant: str, rate: Rate) -> Verdict | None:
        with self._lock:
            held = self._held.get(tenant)
            if held is None:
                return None
            if held.tokens < 1 or held.until < self._clock():
                del self._held[tenant]
                return None
            held.tokens -= 1
            return Verdict(
                allowed=True, rate=rate, left=held.left + held.tokens, wait_seconds=held.full_in
            )

    def _keep(self, tenant: str, rate: Rate, tokens: int, full_in: float) -> Verdict:
        left = max(0, int(rate.calls - full_in / rate.interval.total_seconds()))
        if tokens > 1:
            until = self._clock() + HELD_SECONDS
            with self._lock:
                if len(self._held) >= _TENANTS_MAX:
                    self._held.clear()
                self._held[tenant] = _Held(
                    tokens=tokens - 1, left=left, full_in=full_in, until=until
                )
        return Verdict(allowed=True, rate=rate, left=left + tokens - 1, wait_seconds=full_in)


def _take(tenant: str, rate: Rate, tokens: int) -> float | None:
    """Take tokens out of the bucket; give the seconds until it is full, None if it has too few."""
    span = rate.interval * tokens
    # The latest full_at from which that many tokens can still be taken.
    ceiling = db_now(rate.interval * (rate.calls - tokens))
    taken = TenantBucket.objects.filter(tenant=tenant, full_at__lte=ceiling).update(
        full_at=ExpressionWrapper(
            Greatest(F("full_at"), db_now()) + Value(span), output_field=DateTimeField()
        )
    )
    if taken:
        return _full_in(tenant)
    if _create(tenant, span):
        return span.total_seconds()
    return None


def _create(tenant: str, span: timedelta) -> bool:
    """Give a tenant its first bucket; False when it has one."""
    if TenantBucket.objects.filter(tenant=tenant).exists():
        return False
    bucket = TenantBucket(tenant=tenant)
    bucket.full_at = db_now(span)
    try:
        with transaction.atomic(using=router.db_for_write(TenantBucket)):
            bucket.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _full_in(tenant: str) -> float:
    row = TenantBucket.objects.filter(tenant=tenant).values_list("full_at", db_now()).first()
    if row is None:
        return 0.0
    full_at, now = row
    assert isinstance(full_at, datetime)
    return max(0.0, float((full_at - now).total_seconds()))
