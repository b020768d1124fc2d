"""Turn BATON_DATABASE_URL into Django's DATABASES entry.

Guarantees: SQLite runs in WAL with full synchronisation, immediate transactions and a busy
timeout, so that an accepted request survives a power cut and two writers wait for each other
instead of failing. Leaves to others: which URL (``config.settings.env``) and the schema
(migrations).
"""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

#: Seconds a SQLite writer waits for another one.
SQLITE_BUSY_SECONDS = 20
#: Readers beside one writer, and commits that are on disk when they answer.
_SQLITE_PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"
#: Seconds a PostgreSQL connection may take to come up.
POSTGRES_CONNECT_SECONDS = 5


def business_database(url: str | None, *, data_dir: Path) -> dict[str, Any]:
    """Build the ``default`` database's settings.

    Raises:
        ImproperlyConfigured: the URL names no database.
    """
    if url is None:
        return _sqlite(data_dir / "business.sqlite3")
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "sqlite":
        if parts.netloc or len(path) < 2:
            raise ImproperlyConfigured(
                "BATON_DATABASE_URL: write sqlite:////absolute/path or sqlite:///relative/path"
            )
        return _sqlite(Path(path[1:]))
    if len(path) < 2:
        raise ImproperlyConfigured("BATON_DATABASE_URL: add the database's name after the host")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": path[1:],
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": POSTGRES_CONNECT_SECONDS, **dict(parse_qsl(parts.query))},
    }


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "timeout": SQLITE_BUSY_SECONDS,
            "transaction_mode": "IMMEDIATE",
            "init_command": _SQLITE_PRAGMAS,
        },
        # A file, not memory: Celery workers and threads of a test see the same rows.
        "TEST": {"NAME": str(path.with_name(f"test_{path.name}"))},
    }
