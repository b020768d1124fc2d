"""A PostgreSQL of a test run's own: `python -m tests.kit.postgres COMMAND…` runs a command on it.

```
initdb in a fresh folder ─▶ postgres on a free local port ─▶ COMMAND, told by BATON_DATABASE_URL
                                                                └▶ stop, delete the folder
```

Guarantees: the cluster ends with the command, also when this process is killed; root runs it as
another user, because PostgreSQL refuses root. Where none is installed it says so and ends with
status 3, or 0 with `--optional`. Leaves databases to pytest-django and `own_database`.
"""

import argparse
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from config.embedded.ports import free_port
from config.embedded.process import die_with_parent

#: A folder with initdb and postgres, where they lie in none of the usual places.
BINARIES = "BATON_TEST_POSTGRES_BIN"
#: Where Debian keeps them, one folder a major version.
_DEBIAN = Path("/usr/lib/postgresql")
_USER = "baton"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_NOT_INSTALLED = 3


def find_binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs; None where there is none."""
    if named := os.environ.get(BINARIES):
        return Path(named)
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = [folder for folder in _DEBIAN.glob("*/bin") if (folder / "initdb").exists()]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


@contextmanager
def running_cluster(binaries: Path) -> Iterator[str]:
    """Run a cluster for the length of a block; give the URL of its database `baton`."""
    folder = Path(tempfile.mkdtemp(prefix="baton-postgres-"))
    identity: dict[str, Any] = {}
    if os.getuid() == 0:
        account = _unprivileged()
        os.chown(folder, account.pw_uid, account.pw_gid)
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    try:
        data = folder / "data"
        _initialise(binaries, data, identity)
        port = free_port()
        server = _start(binaries, data, port, identity)
        try:
            url = f"postgresql://{_USER}@127.0.0.1:{port}"
            _wait(f"{url}/postgres", server, folder)
            with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
                connection.execute("CREATE DATABASE baton")
            yield f"{url}/baton"
        finally:
            _stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_database(url: str) -> Iterator[str]:
    """Make a fresh database beside the one `url` names; give its URL, drop it afterwards."""
    name = f"own_{uuid.uuid4().hex[:16]}"
    admin = urlunsplit(urlsplit(url)._replace(path="/postgres"))
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("root needs an account named postgres or nobody to run PostgreSQL as")


def _initialise(binaries: Path, data: Path, identity: dict[str, Any]) -> None:
    command = [binaries / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8"]
    done = subprocess.run(
        [*map(str, command), "--locale=C", "--no-sync"],
        cwd=data.parent,
        capture_output=True,
        text=True,
        **identity,
    )
    if done.returncode:
        raise RuntimeError(f"initdb failed:\n{done.stderr}")


def _start(
    binaries: Path, data: Path, port: int, identity: dict[str, Any]
) -> "subprocess.Popen[bytes]":
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "max_connections": 200,
        # The tests kill clients, never this server, so nothing has to survive a power cut.
        "fsync": "off",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (data.parent / "log").open("wb") as log:
        return subprocess.Popen(
            [str(binaries / "postgres"), "-D", str(data), *options],
            cwd=data.parent,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGQUIT),
            **identity,
        )


def _wait(url: str, server: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError as exc:
            if server.poll() is not None or time.monotonic() > deadline:
                log = (folder / "log").read_text(errors="replace")
                raise RuntimeError(f"PostgreSQL did not start: {exc}\n{log[-2000:]}") from exc
            time.sleep(0.05)
        else:
            return


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.send_signal(signal.SIGINT)
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def main() -> int:
    """Run the command on a cluster of its own and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kit.postgres", description=__doc__)
    parser.add_argument("--optional", action="store_true", help="no PostgreSQL is no failure")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND…")
    chosen = parser.parse_args()
    binaries = find_binaries()
    if binaries is None:
        sys.stderr.write(
            f"PostgreSQL is not installed (no initdb on the PATH, in {_DEBIAN}/*/bin or in "
            f"${BINARIES}): these tests have run on SQLite only.\n"
        )
        return 0 if chosen.optional else _NOT_INSTALLED
    with running_cluster(binaries) as url:
        version = re.search(r"\d+", binaries.parent.name)
        sys.stderr.write(f"On PostgreSQL {version[0] if version else '?'} ({binaries}):\n")
        return subprocess.run(
            chosen.command, env={**os.environ, "BATON_DATABASE_URL": url}
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
