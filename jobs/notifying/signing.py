"""Sign a webhook so that its receiver can tell it from anybody else's.

    secret    = "whsec_" + hex(HKDF-SHA256(key=SECRET_KEY, info="baton webhook v1:" + tenant))
    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Secrets are derived and not stored: no database or backup holds one, and a tenant's secret tells
nothing about another's or about the key. While SECRET_KEY_FALLBACKS names older keys each message
carries their signatures too, so receivers can change over one by one.

Guarantees: pure. Leaves to others: sending (`sender`), showing a secret (`manage.py`).
"""

import hashlib
import hmac
from collections.abc import Sequence

#: Every secret starts with this, so that secret scanners find leaked ones.
SECRET_PREFIX = "whsec_"  # noqa: S105 -- a public prefix, not a secret

ID_HEADER = "Baton-Webhook-Id"
TIMESTAMP_HEADER = "Baton-Webhook-Timestamp"
SIGNATURE_HEADER = "Baton-Webhook-Signature"

_INFO = "baton webhook v1:"
_SALT = b"baton"
_HASH = hashlib.sha256


def tenant_secrets(tenant: str, keys: Sequence[str]) -> list[str]:
    """Derive a tenant's secret from each key, the present one first."""
    return [SECRET_PREFIX + _hkdf(key.encode(), (_INFO + tenant).encode()).hex() for key in keys]


def sign(body: bytes, *, timestamp: int, secrets: Sequence[str]) -> str:
    """Give the signature header's value: `v1=<hex>`, one for each secret, comma-separated."""
    message = f"{timestamp}.".encode() + body
    return ",".join(
        "v1=" + hmac.new(secret.encode(), message, _HASH).hexdigest() for secret in secrets
    )


def signed_headers(
    body: bytes, *, message_id: str, timestamp: int, secrets: Sequence[str]
) -> dict[str, str]:
    """Give the headers that a signed message travels with; `timestamp` is Unix seconds."""
    return {
        "Content-Type": "application/json",
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: sign(body, timestamp=timestamp, secrets=secrets),
    }


def _hkdf(key: bytes, info: bytes) -> bytes:
    """Derive 32 bytes (RFC 5869; one block of SHA-256 is enough)."""
    extracted = hmac.new(_SALT, key, _HASH).digest()
    return hmac.new(extracted, info + b"\x01", _HASH).digest()
