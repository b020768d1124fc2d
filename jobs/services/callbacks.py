"""What providers tell us by calling an address that only they know.

The address carries a signed token naming the provider and the wait it belongs to, so nothing has to
be stored before the call comes. What is said is stored first and never believed: the woken step
asks the provider itself.

Guarantees: a wrong, old or foreign token is no address at all; each thing said is stored once and
rings once. A death between the two is covered by the wait's poll fallback. Leaves to others: HTTP.
"""

import hashlib
import json
from typing import Any

import structlog
from django.core import signing

from jobs.models import ProviderCallback
from jobs.models.waiting import PROVIDER_CHARACTERS
from jobs.services.errors import JobNotFound
from jobs.services.ringing import ring
from kernel import check_json

log = structlog.get_logger(__name__)

#: Type of the signal a callback rings with.
SIGNAL = "provider_called"
#: Seconds for which an address is one.
MAX_AGE_SECONDS = 30 * 24 * 3600
#: Different things one address can be told; a provider has no reason to say more.
BODIES_MAX = 50
BODY_BYTES = 16 * 1024


def address(
    base_url: str, *, provider: str, workflow_id: str, wait_key: str, generation: int
) -> str:
    """Give the address a provider may call about one wait."""
    token = signing.dumps([workflow_id, wait_key, generation], salt=_salt(provider), compress=True)
    return f"{base_url.rstrip('/')}/api/v1/callbacks/{provider}/{token}"


def receive(provider: str, token: str, body: Any) -> bool:
    """Store what a provider said, then ring; tells whether it was new.

    Raises:
        JobNotFound: the token is none of this provider's, or too old.
        InvalidValue: the body cannot be kept (ValueTooLarge: it is too long).
    On repeat: nothing is stored again, and it is rung again in case the first ring was lost.
    """
    workflow_id, wait_key, generation = _read(provider, token)
    check_json(body, limit_bytes=BODY_BYTES, what="callback")
    token_hash = hashlib.sha256(token.encode()).hexdigest()
    said = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    body_hash = hashlib.sha256(said.encode()).hexdigest()
    known = ProviderCallback.objects.filter(token_hash=token_hash)
    if known.count() >= BODIES_MAX and not known.filter(body_hash=body_hash).exists():
        log.warning("callback_dropped", provider=provider, workflow_id=workflow_id)
        return False
    _, is_new = ProviderCallback.objects.get_or_create(
        token_hash=token_hash,
        body_hash=body_hash,
        defaults={"provider": provider, "workflow_id": workflow_id, "body": body},
    )
    ring(
        workflow_id=workflow_id,
        signal_type=SIGNAL,
        wait_key=wait_key,
        generation=generation,
        signal_id=f"callback:{token_hash[:32]}:{body_hash[:32]}",
    )
    return is_new


def _read(provider: str, token: str) -> tuple[str, str, int]:
    if not (provider.isascii() and provider.isidentifier()) or len(provider) > PROVIDER_CHARACTERS:
        raise JobNotFound(provider)
    try:
        workflow_id, wait_key, generation = signing.loads(
            token, salt=_salt(provider), max_age=MAX_AGE_SECONDS
        )
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise JobNotFound(token[:40]) from error
    return workflow_id, wait_key, generation


def _salt(provider: str) -> str:
    return f"baton.callback.{provider}"
