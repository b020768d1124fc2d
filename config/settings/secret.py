"""Keep Django's SECRET_KEY in the data folder when the environment gives none.

Guarantees: the key is made once, readable by its owner only, and never half-written: processes
that start together agree on one key. Leaves to others: keys of production, which come from
BATON_SECRET_KEY.
"""

import os
import secrets
from pathlib import Path


def load_or_create_secret_key(data_dir: Path) -> str:
    """Return the folder's key. On repeat: the same key."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / "secret_key"
    if not path.exists():
        draft = data_dir / f"secret_key.{os.getpid()}.{secrets.token_hex(4)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
        try:
            # A hard link either names the whole draft or fails because another process was first.
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()
