"""Answer a request under a client's key once, whoever repeats it and whatever dies meanwhile.

```
begin ─▶ insert the key ─▶ do the work ─▶ write the answer into the key's row ─▶ commit
           │ taken                 │ refused                                       │ killed before
           ▼                       ▼                                               ▼
       read the winner's      roll back: nothing is kept,               nothing is kept
```

Guarantees: key, effect and answer are committed together, so a row that can be read is complete; a
repeat gets the same status and bytes; a refusal or an error keeps nothing, so that the corrected
request may use the same key. The second of two racing requests waits in the database for the first
one's commit, on PostgreSQL for `LOCK_WAIT` at most. Keys of another tenant, user or operation never
meet. Leaves to others: the header and the fingerprint (`jobs.api.idempotency`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import (
    DEFAULT_DB_ALIAS,
    IntegrityError,
    OperationalError,
    connections,
    router,
    transaction,
)
from django.db.models import Exists, OuterRef

from jobs.dispatch.clock import db_now
from jobs.models import ContentJob, IdempotencyKey
from jobs.models.content import OPEN_STATUSES
from jobs.services.errors import KeyInProgress, KeyReused

#: How long a repeat waits for the commit of the request before it (PostgreSQL), seconds.
LOCK_WAIT_SECONDS = 2
#: Keys are kept at least this long; longer while their job is open.
KEPT_AT_LEAST = timedelta(days=7)
#: Rows one statement of `forget` deletes.
FORGET_BATCH = 500
_LOCK_NOT_AVAILABLE = "55P03"
#: A key that is forgotten between losing the race and reading the winner is claimed again.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Whose key it is, and for which request."""

    tenant: str
    user_id: int
    #: Which call; the same key may serve another one.
    operation: str
    key: str
    #: Hex SHA-256 of what was asked.
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as it is sent, and kept for repeats."""

    status: int
    body: bytes
    location: str
    job_id: str


def answer_once(claim: Claim, perform: Callable[[], Answer]) -> tuple[Answer, bool]:
    """Return the answer, and whether it is a repeat of an earlier one.

    Raises:
        KeyReused: the key was used for another request.
        KeyInProgress: the request with this key has not committed yet.
        ServiceError, KernelError: what `perform` refused; nothing is kept.
    On repeat: the first answer.
    """
    for _ in range(_TRIES):
        known = _find(claim)
        if known is not None:
            return known, True
        try:
            with transaction.atomic(using=_alias()):
                return _perform(claim, perform), False
        except _Taken:
            continue
    raise KeyInProgress


def forget(
    *, older_than: timedelta = KEPT_AT_LEAST, limit: int = 10_000, dry_run: bool = False
) -> int:
    """Delete up to `limit` keys of that age whose job is over; return how many.

    An age below `KEPT_AT_LEAST` is raised to it. On repeat: the next ones.
    """
    open_job = ContentJob.objects.filter(pk=OuterRef("job_id"), status__in=OPEN_STATUSES)
    old = IdempotencyKey.objects.filter(
        ~Exists(open_job), created_at__lte=db_now(-max(older_than, KEPT_AT_LEAST))
    ).order_by("created_at")
    if dry_run:
        return old[:limit].count()
    gone = 0
    while gone < limit:
        batch = list(old.values_list("pk", flat=True)[: min(FORGET_BATCH, limit - gone)])
        if not batch:
            break
        gone += IdempotencyKey.objects.filter(pk__in=batch).delete()[0]
    return gone


class _Taken(Exception):
    """Somebody committed this key first."""


def _find(claim: Claim) -> Answer | None:
    row = IdempotencyKey.objects.using(_alias()).filter(**_name_of(claim)).first()
    if row is None:
        return None
    if row.fingerprint != claim.fingerprint:
        raise KeyReused(job_id=row.job_id, created_at=row.created_at)
    return Answer(
        status=row.status, body=row.body.encode("ascii"), location=row.location, job_id=row.job_id
    )


def _perform(claim: Claim, perform: Callable[[], Answer]) -> Answer:
    row = _insert(claim)
    answer = perform()
    IdempotencyKey.objects.using(_alias()).filter(pk=row.pk).update(
        status=answer.status,
        body=answer.body.decode("ascii"),
        location=answer.location,
        job_id=answer.job_id,
    )
    return answer


def _insert(claim: Claim) -> IdempotencyKey:
    """Insert the key; whoever inserted it before is waited for."""
    row = IdempotencyKey(**_name_of(claim), fingerprint=claim.fingerprint)
    _bound_lock_wait(f"{LOCK_WAIT_SECONDS}s")
    try:
        row.save(force_insert=True, using=_alias())
    except IntegrityError:
        raise _Taken from None
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise KeyInProgress from None
        raise
    _bound_lock_wait("DEFAULT")
    return row


def _name_of(claim: Claim) -> dict[str, object]:
    return {
        "tenant": claim.tenant,
        "user_id": claim.user_id,
        "operation": claim.operation,
        "key": claim.key,
    }


def _bound_lock_wait(value: str) -> None:
    """Limit how long this transaction waits for a row; SQLite has its busy time-out instead."""
    connection = connections[_alias()]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            setting = value if value == "DEFAULT" else f"'{value}'"
            cursor.execute(f"SET LOCAL lock_timeout = {setting}")


def _alias() -> str:
    # Key and object must share one transaction, hence the object's database.
    return router.db_for_write(ContentJob) or DEFAULT_DB_ALIAS
