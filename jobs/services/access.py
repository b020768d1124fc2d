"""API tokens: issue, check, rotate, revoke; and the ready-made access of the demo stack.

Guarantees: a token's text exists once, in the answer of the call that issued it; the database
keeps its SHA-256 only; a check is one indexed look-up and a comparison in constant time; revoked
and expired tokens never pass. Leaves to others: the HTTP header (``jobs.api.authentication``).
"""

import hashlib
import json
import os
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, User
from django.db import router, transaction
from django.db.models import Q
from django.utils import timezone

from jobs.models import ApiToken
from jobs.services.errors import InvalidRequest, Problem, TokenReplaced

#: Every token starts with this, so that secret scanners find leaked ones.
TOKEN_PREFIX = "baton_"  # noqa: S105 -- a public prefix, not a secret
#: Random bytes of a token.
TOKEN_BYTES = 32
#: `last_used_at` is written at most once in this time.
LAST_USED_GRAIN = timedelta(minutes=1)
#: How long a rotated token goes on working: what callers get unasked, and at most.
OVERLAP = timedelta(days=1)
OVERLAP_MAX = timedelta(days=30)

_RAW = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]{{43}}")
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A new token and its text, which is shown this once."""

    token: ApiToken
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAccess:
    """A ready user of the demo stack: console login and API token."""

    username: str
    password: str
    token: str
    tenant: str


def issue_token(
    *,
    user: User,
    tenant: str = "",
    name: str,
    expires_at: datetime | None = None,
    ops: bool = False,
) -> IssuedToken:
    """Create a token for a user: of a tenant, or with `ops` of the operators and of no tenant.

    Raises:
        InvalidRequest: the tenant is no slug, the expiry has passed, or it is to be both.
    On repeat: another token.
    """
    check_token(tenant=tenant, expires_at=expires_at, ops=ops)
    raw = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    token = ApiToken.objects.create(
        name=name,
        tenant=tenant,
        user=user,
        token_hash=_hash(raw),
        expires_at=expires_at,
        ops=ops,
    )
    return IssuedToken(token=token, raw=raw)


def authenticate(raw: str) -> ApiToken | None:
    """Return the token this text belongs to, with its user; None when it does not pass."""
    if not _RAW.fullmatch(raw):
        return None
    digest = _hash(raw)
    token = ApiToken.objects.select_related("user").filter(token_hash=digest).first()
    if token is None or not secrets.compare_digest(token.token_hash, digest):
        return None
    now = timezone.now()
    if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.last_used_at is None or now - token.last_used_at >= LAST_USED_GRAIN:
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_GRAIN)
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
    return token


def rotate_token(token: ApiToken, *, overlap: timedelta = OVERLAP) -> IssuedToken:
    """Issue a token in another one's place, which goes on working for `overlap` and then ends.

    The new token has the old one's tenant, user, name and length of life.

    Raises:
        InvalidRequest: the overlap is negative or longer than `OVERLAP_MAX`.
        TokenReplaced: the token was rotated before, or ended; nothing was issued.
    On repeat: while the successor has never been used its text may have been lost on the way, so
    it is revoked and another one issued; once it has been used, `TokenReplaced`.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        most = int(OVERLAP_MAX.total_seconds())
        raise _refused("/overlap_seconds", f"Give a number of seconds from 0 to {most}.")
    now = timezone.now()
    # One rotated before ends early by that; the successor it has had knows how long it was to live.
    meant = token.replaced_by or token
    life = None if meant.expires_at is None else meant.expires_at - meant.created_at
    with transaction.atomic(using=router.db_for_write(ApiToken)):
        if token.replaced_by_id is not None:
            _withdraw_unused(token.replaced_by_id)
        issued = issue_token(
            user=token.user,
            tenant=token.tenant,
            ops=token.ops,
            name=token.name,
            expires_at=None if life is None else now + life,
        )
        ends = now + overlap if token.expires_at is None else min(token.expires_at, now + overlap)
        replaced = ApiToken.objects.filter(
            pk=token.pk, revoked_at=None, replaced_by=token.replaced_by_id
        ).update(replaced_by=issued.token, expires_at=ends)
        if not replaced:
            raise TokenReplaced
    return issued


def revoke_token(token_id: int) -> bool:
    """End a token at once; True when this call ended it. On repeat: False, the first time stays."""
    alive = ApiToken.objects.filter(pk=token_id, revoked_at=None)
    return alive.update(revoked_at=timezone.now()) == 1


def tenant_of_user(user: AbstractBaseUser) -> str | None:
    """Return the one tenant a user has live tokens of; None when there is none or more than one."""
    now = timezone.now()
    live = ApiToken.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=now), user_id=user.pk, revoked_at=None, ops=False
    )
    tenants = list(live.values_list("tenant", flat=True).distinct()[:2])
    return tenants[0] if len(tenants) == 1 else None


def check_token(*, tenant: str, expires_at: datetime | None, ops: bool = False) -> None:
    """Refuse what cannot be issued. Raises: InvalidRequest."""
    if expires_at is not None and expires_at <= timezone.now():
        raise _refused(
            "/expires_at", "This lies in the past; leave it out for a token without end."
        )
    if ops and tenant:
        raise _refused("/tenant", "A token is of a tenant or of the operators; issue one for each.")
    if not ops and not _TENANT.fullmatch(tenant):
        raise _refused(
            "/tenant",
            "A tenant is a slug: lower-case letters, digits and dashes, at most 63 characters.",
        )


def ensure_demo_access(*, username: str = "demo", tenant: str = "demo") -> DemoAccess:
    """Make the demo stack's user and token, remembered in the data folder (owner-readable).

    On repeat: the same access while it still works; else a new password or token in its place.
    """
    path = Path(settings.BATON_DATA_DIR) / "demo_access.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    password = known.get("password") or secrets.token_urlsafe(12)
    users = get_user_model()._default_manager
    user, _ = users.get_or_create(username=username)
    if not user.check_password(password) or not user.is_superuser:
        user.is_staff = user.is_superuser = user.is_active = True
        user.set_password(password)
        user.save()
    raw = known.get("token", "")
    token = authenticate(raw)
    if token is None or token.user_id != user.pk or token.tenant != tenant:
        raw = issue_token(user=user, tenant=tenant, name="demo stack").raw
    access = DemoAccess(username=username, password=password, token=raw, tenant=tenant)
    _remember(path, {"password": password, "token": raw})
    return access


def _withdraw_unused(token_id: int) -> None:
    """End a token nobody has used. Raises: TokenReplaced when somebody has, or it has ended."""
    unused = ApiToken.objects.filter(pk=token_id, last_used_at=None, revoked_at=None)
    if not unused.update(revoked_at=timezone.now()):
        raise TokenReplaced


def _refused(pointer: str, detail: str) -> InvalidRequest:
    return InvalidRequest([Problem(pointer=pointer, detail=detail)])


def _hash(raw: str) -> str:
    return hashlib.sha256(raw.encode()).hexdigest()


def _remember(path: Path, values: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(values, file)
    draft.replace(path)
