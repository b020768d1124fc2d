"""One mongod and one redis-server a test run, shared by all xdist workers.

```
first test that needs a server ─(file lock)─▶ keeper process ─▶ mongod, redis-server
keeper: waits until the process that leads the run ends, or SIGTERM ─▶ stops both ─▶ ends
```

Guarantees that servers outlive any single xdist worker but never the run: the keeper watches the
run's leader, so even a SIGKILLed run leaves nothing behind. `BATON_TEST_MONGO_URL` and
`BATON_TEST_REDIS_URL`, both set, name servers to use instead.
Leaves databases and keys of single tests to the fixtures in `tests/conftest.py`.
"""

import atexit
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from config.embedded import MongoServer, RedisServer, pidfile

#: Environment variables through which xdist workers learn the run's folder and its leader.
RUN_DIR = "BATON_TEST_RUN_DIR"
LEADER = "BATON_TEST_LEADER"

_ROOT = Path(__file__).resolve().parents[2]
_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
_START_TIMEOUT = 90.0
_STOP_TIMEOUT = 40.0
_LOOK_EVERY = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Addresses of the run's servers."""

    mongo_url: str
    redis_url: str


def lead_run() -> bool:
    """Make this process the run's leader unless there is one; say whether it leads."""
    if RUN_DIR not in os.environ:
        os.environ[RUN_DIR] = tempfile.mkdtemp(prefix="baton-tests-", dir=_in_memory())
        os.environ[LEADER] = str(os.getpid())
        # A run that ends before it has begun, by Ctrl-C while it imports, has no keeper to tidy up.
        atexit.register(_end_run_of, os.getpid())
    return os.environ[LEADER] == str(os.getpid())


def _in_memory() -> str | None:
    """Return a folder in memory with room for a run, where nothing waits for a disk; or None."""
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        return str(_MEMORY) if shutil.disk_usage(_MEMORY).free > _ROOM else None
    return None


def run_dir() -> Path:
    """Return the run's folder, shared by its xdist workers."""
    return Path(os.environ[RUN_DIR])


def end_run() -> None:
    """Stop the servers, if any, and delete the run's folder. For the leader only."""
    folder = run_dir()
    keeper = pidfile.read(folder / "keeper.pid")
    if keeper is not None and keeper.is_alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper.pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_TIMEOUT
        while keeper.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)
    del os.environ[RUN_DIR], os.environ[LEADER]


def _end_run_of(leader: int) -> None:
    """End the run this process leads, if nobody has; a fork of it leads nothing."""
    if RUN_DIR in os.environ and os.environ[LEADER] == str(leader) == str(os.getpid()):
        end_run()


def servers() -> Servers:
    """Return the run's servers, starting them on the first call in the whole run."""
    mongo, redis = os.environ.get("BATON_TEST_MONGO_URL"), os.environ.get("BATON_TEST_REDIS_URL")
    if mongo and redis:
        return Servers(mongo_url=mongo, redis_url=redis)
    with _run_lock():
        record = run_dir() / "servers.json"
        if not record.exists():
            _start_keeper()
        return Servers(**json.loads(record.read_text(encoding="utf-8")))


@contextlib.contextmanager
def mongod_of_one_test(folder: Path) -> Iterator[MongoServer]:
    """Start a mongod that a test may hurt; it ends by a kill, for nobody wants its data."""
    server = MongoServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def _run_lock() -> Iterator[None]:
    with (run_dir() / "lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _start_keeper() -> None:
    log = run_dir() / "keeper.log"
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.kit.servers"],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    pidfile.write(run_dir() / "keeper.pid", pidfile.ProcessId.of(keeper.pid))
    deadline = time.monotonic() + _START_TIMEOUT
    while not (run_dir() / "servers.json").exists():
        if keeper.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the test servers did not start:\n{log.read_text()}")
        time.sleep(0.02)
    # The keeper ends by itself; marking it as reaped keeps the "still running" warning away.
    keeper.returncode = 0


def _keep() -> None:
    """Run the servers until the leader ends or SIGTERM comes; then stop them."""
    leader = pidfile.ProcessId.of(int(os.environ[LEADER]))
    ending = False

    def end(*_: object) -> None:
        nonlocal ending
        ending = True

    signal.signal(signal.SIGTERM, end)
    folder = run_dir()
    with (
        MongoServer(folder / "mongo") as mongo,
        RedisServer(folder / "redis") as redis,
    ):
        record = json.dumps({"mongo_url": mongo.url, "redis_url": redis.url})
        (folder / "servers.new").write_text(record, encoding="utf-8")
        (folder / "servers.new").replace(folder / "servers.json")
        while not ending and leader.is_alive():
            time.sleep(_LOOK_EVERY)
        # Nobody wants this data any more, and a clean mongod shutdown takes a second.
        mongo.kill()
        redis.kill()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _keep()
