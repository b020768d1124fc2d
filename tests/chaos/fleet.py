"""The servers and processes of a soak: started, hurt and healed by name.

Guarantees that `heal` brings every server and worker back whatever was done to them, and that
nothing is left when the fleet closes. Leaves which hurt comes when to `tests.chaos.faults`.
"""

import contextlib
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

from config.embedded import MongoServer, RedisServer
from tests.chaos.business import ledger, plans
from tests.kit.processes import Child, python

LEASE_SECONDS = 4
#: What a worker's own clock may be off by, seconds.
SKEWS = (0.0, 0.0, 3600.0, -3600.0)
#: Claims a child of a worker runs side by side.
SLOTS = (1, 1, 4)
#: The product's queue of `content.article`.
CONTENT = "content"


class Fleet:
    """N workers of the soak's queues, one of the control queue, one beat, one mongod, one Redis."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int,
        children: int,
        lots: random.Random,
        slots: Sequence[int] = SLOTS,
        group_commits: int | None = None,
    ) -> None:
        self.folder = folder
        self.mongo = MongoServer(folder / "mongo")
        self.redis = RedisServer(folder / "redis")
        self.names = [f"w{number}" for number in range(workers)]
        self.workers: dict[str, Child] = {}
        self.beats: list[Child] = []
        #: Every process there was, for its last words.
        self.all: list[tuple[str, Child]] = []
        self._children = children
        self._lots = lots
        self._slots = slots
        self._groups = {"BATON_GROUP_COMMITS": str(group_commits)} if group_commits else {}

    def start_servers(self) -> dict[str, str]:
        """Start mongod and Redis; return the environment of everybody who uses them."""
        self.mongo.start()
        self.redis.start()
        self.env = {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "BATON_MONGO_URL": self.mongo.url,
            "BATON_REDIS_URL": self.redis.url,
            "BATON_BROKER_URL": self.redis.url,
            "BATON_DATABASE": "chaos",
            "BATON_KEY_PREFIX": "chaos",
            "BATON_DATA_DIR": str(self.folder / "data"),
            "BATON_DATABASE_URL": f"sqlite:///{self.folder}/business.sqlite3",
            "BATON_LEASE_SECONDS": str(LEASE_SECONDS),
            "BATON_HANG_GRACE_SECONDS": "2",
            "BATON_FETCH_ALLOW_PRIVATE": "true",
            ledger.LEDGER: str(self.folder / "ledger"),
            **self._groups,
        }
        return self.env

    def start_processes(self) -> None:
        """Start every worker and one beat; they are ready a little later."""
        self._control()
        for name in self.names:
            self.start_worker(name)
        self.start_beat()

    def start_worker(self, name: str) -> float:
        """Start a worker under a name, its clock right or wrong; return how wrong."""
        skew = self._lots.choice(SKEWS)
        queues = f"{plans.QUEUE},{CONTENT}"
        self.workers[name] = self._celery(name, skew, "worker", "-Q", queues, self._children)
        return skew

    def start_beat(self) -> None:
        """Start one more beat."""
        schedule = str(self.folder / f"schedule-{len(self.all)}")
        child = self._run(
            "beat", "-m", "celery", "-A", "config", "beat", "-s", schedule, "--pidfile="
        )
        self.beats.append(child)

    def stop_beat(self) -> None:
        """End the oldest beat, if there is one."""
        if self.beats:
            self.beats.pop(0).kill_group()

    def children_of(self, name: str) -> list[int]:
        """Return the pool children of a worker; none while it starts."""
        pid = self.workers[name].pid
        with contextlib.suppress(OSError):
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [int(child) for child in found]
        return []

    def heal(self) -> None:
        """Let everything run: servers, workers, one beat."""
        for server in (self.mongo, self.redis):
            if server.is_alive():
                os.kill(server.pid, signal.SIGCONT)
            else:
                server.start()
        for name, worker in list(self.workers.items()):
            with contextlib.suppress(ProcessLookupError):
                worker.send_group(signal.SIGCONT)
            if worker.process.poll() is not None:
                self.start_worker(name)
        if self.workers["control"].process.poll() is not None:
            self._control()
        while len(self.beats) > 1:
            self.stop_beat()
        if not self.beats:
            self.start_beat()

    def close(self) -> None:
        """End everything at once, and keep what the processes said."""
        for number, (name, child) in enumerate(self.all):
            with contextlib.suppress(ProcessLookupError):
                child.send_group(signal.SIGCONT)
            child.__exit__()
            (self.folder / f"{number:03}-{name}.log").write_text(child.output)
        for server in (self.mongo, self.redis):
            if server.is_alive():
                os.kill(server.pid, signal.SIGCONT)
                server.kill()

    def _control(self) -> None:
        self.workers["control"] = self._celery("control", 0.0, "worker", "-Q", "control", 1)

    def _celery(
        self, name: str, skew: float, command: str, flag: str, queues: str, children: int
    ) -> Child:
        slots = {"BATON_SLOTS_PER_CHILD": str(self._lots.choice(self._slots))}
        return self._run(
            name, "-m", "tests.chaos.skewed_worker", str(skew), "-A", "config", command,
            flag, queues, "-n", f"{name}.{len(self.all)}@chaos", "-c", str(children),
            "--without-gossip", "--without-mingle", more=slots,
        )  # fmt: skip

    def _run(self, name: str, *arguments: str, more: dict[str, str] | None = None) -> Child:
        child = python(*arguments, env={**self.env, **(more or {})})
        self.all.append((name, child))
        return child
