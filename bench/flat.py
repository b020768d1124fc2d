"""What claims, ticks and look-arounds cost beside few and beside very many workflows.

Guarantees that the same operations are measured on both, on settled data: everything is on disk
before the clock runs. Leaves the size to `BATON_BENCH_FLAT` (1,000,000 waiting and a tenth of that
ready; 20,000 with --quick).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import redis

from bench.crowd import clone
from bench.figure import Figure, percentile, shown
from bench.site import QUEUE, Site, connect, fresh_database, mongo
from bench.workflows import LISTENING, THREE, WAITING, definitions, listener
from kernel import workflow_id_of
from kernel.hints.keys import Keys
from kernel.store import Connection, InstanceScan, InstanceStore, StoreClock

FEW: Final = 1_000
#: Enough for every claim that is measured.
_READY_AT_LEAST: Final = 8_000
_INSTANCES: Final = "workflow_instances"
_LEASE_MS: Final = 600_000
#: Timers woken by one tick, signals delivered as one page.
_TIMERS, _SIGNALS = 50, 50
#: Calls of an operation whose examined keys are read, and those measured of one that wakes many.
_PROFILED, _COSTLY = 2, 3
#: Of the cache, below which it counts as settled; seconds to wait for it.
_DIRTY_SHARE, _SETTLE_SECONDS = 0.02, 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One operation: milliseconds of each call, and what one call examines at most."""

    calls_ms: list[float]
    #: Keys and documents of instances.
    examined: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is measured, and what brings its occasion about beforehand, outside the clock."""

    act: Callable[[], object]
    prepare: Callable[[], object] | None = None
    is_costly: bool = False


class Crowd:
    """Workflows in a database: `waiting`, half of them sleeping, and `ready` to be claimed."""

    def __init__(
        self, environment: Mapping[str, str], *, waiting: int, ready: int, page: int = 500
    ) -> None:
        self.waiting, self.ready, self._page = waiting, ready, page
        self._environment = environment
        self._client = mongo(environment)
        self._database = self._client[environment["BATON_DATABASE"]]
        self._connection = Connection(
            environment["BATON_MONGO_URL"], database=environment["BATON_DATABASE"]
        )
        self._clock = StoreClock()
        self._kernel = connect(environment)
        self._tokens = (f"bench-{number}" for number in itertools.count())
        self._claimed = itertools.count(1)
        self._woken, self._rung = itertools.count(1), itertools.count(1)

    def seed(self) -> None:
        """Make everybody, with hints for the sleepers, and let the database settle."""
        for definition in definitions():
            self._kernel.register(definition)
        self._kernel.ensure_schema()
        self._kernel.start_or_resume(WAITING, biz_key=_sleeper(0))
        self._kernel.start_or_resume(LISTENING, biz_key=listener(0))
        self._kernel.drain([QUEUE])
        self._kernel.start_or_resume(THREE, biz_key=_ready(0))
        self._kernel.hints.hints.set_marker()
        instances, now = self._database[_INSTANCES], self._kernel.progress().now
        half = self.waiting // 2

        def later(number: int) -> dict[str, Any]:
            return {"claimable_time": now + timedelta(days=1, milliseconds=number)}

        def since(number: int) -> dict[str, Any]:
            return {"claimable_time": now - timedelta(milliseconds=self.ready - number)}

        clone(
            instances,
            workflow_id_of(_sleeper(0)),
            _keys(_sleeper, half),
            found={"status": "waiting"},
            own=later,
        )
        clone(
            instances, workflow_id_of(listener(0)), _keys(listener, self.waiting - half),
            found={"status": "waiting"},
        )  # fmt: skip
        clone(
            instances,
            workflow_id_of(_ready(0)),
            _keys(_ready, self.ready),
            found={"status": "running"},
            own=since,
        )
        self._put_timers(
            {workflow_id_of(_sleeper(n)): now + timedelta(days=1) for n in range(half)}
        )
        _settle(self._client)

    def operations(self) -> dict[str, Operation]:
        """Return what is measured, by name."""
        store = InstanceStore(self._connection, self._clock)
        scan = InstanceScan(self._connection, self._clock)
        told: dict[str, Any] = {
            "fingerprints": [THREE.fingerprint],
            "owner": "bench",
            "lease_ms": _LEASE_MS,
        }
        cursor = self._after(self.ready // 4)

        def claim_group() -> object:
            ids = [workflow_id_of(_ready(self.ready - next(self._claimed))) for _ in range(16)]
            return store.claim_group(ids, seal=next(self._tokens)[:16], **told)

        def claim() -> object:
            wanted = workflow_id_of(_ready(self.ready - next(self._claimed)))
            return store.claim(wanted, token=next(self._tokens), **told)

        return {
            "claim from MongoDB alone": Operation(
                act=lambda: store.claim_any([QUEUE], token=next(self._tokens), **told)
            ),
            "claim of a candidate": Operation(act=claim),
            "claims of a group of 16": Operation(act=claim_group),
            "tick with nothing due": Operation(act=self._kernel.tick),
            f"tick that wakes {_TIMERS}": Operation(
                act=self._kernel.tick, prepare=self._let_time_pass, is_costly=True
            ),
            f"{_SIGNALS} signals as a page": Operation(act=self._signal, is_costly=True),
            "reconcile, due waits, none due": Operation(
                act=lambda: scan.due_waiting(limit=self._page)
            ),
            f"reconcile, a page of {self._page} lost candidates": Operation(
                act=lambda: scan.due_claimable(limit=self._page, after=cursor)
            ),
            "progress": Operation(act=self._kernel.progress),
        }

    def close(self) -> None:
        """Let go of the servers."""
        self._kernel.close()
        self._connection.close()
        self._client.close()

    def examined(self, operation: Operation) -> tuple[int, int]:
        """Return how many keys and documents of instances one call examines, at most."""
        keys, documents = 0, 0
        for _ in range(_PROFILED):
            if operation.prepare is not None:
                operation.prepare()
            with self._profiled() as rows:
                operation.act()
            keys = max(keys, sum(row.get("keysExamined", 0) for row in rows))
            documents = max(documents, sum(row.get("docsExamined", 0) for row in rows))
        return keys, documents

    @contextmanager
    def _profiled(self) -> Iterator[list[dict[str, Any]]]:
        rows: list[dict[str, Any]] = []
        self._database["system.profile"].drop()
        self._database.command("profile", 2)
        try:
            yield rows
        finally:
            self._database.command("profile", 0)
        rows += self._database["system.profile"].find({"ns": f"{self._database.name}.{_INSTANCES}"})

    def _after(self, number: int) -> tuple[datetime, str]:
        row = self._database[_INSTANCES].find_one({"biz_key": _ready(number)})
        assert row is not None, "seeded before it is measured"
        return (row["claimable_time"], row["workflow_id"])

    def _let_time_pass(self) -> None:
        """Let the time of some sleepers come."""
        past = self._kernel.progress().now - timedelta(seconds=1)
        ids = [workflow_id_of(_sleeper(next(self._woken))) for _ in range(_TIMERS)]
        due = {"claimable_time": past, "waits.0.poll_time": past}
        self._database[_INSTANCES].update_many({"workflow_id": {"$in": ids}}, {"$set": due})
        self._put_timers(dict.fromkeys(ids, past))

    def _signal(self) -> None:
        numbers = [next(self._rung) for _ in range(_SIGNALS)]
        told = {"signal_type": "event", "wait_key": "event"}
        assert all(
            self._kernel.deliver_signals(
                [
                    {**told, "workflow_id": workflow_id_of(listener(n)), "signal_id": f"event:{n}"}
                    for n in numbers
                ]
            )
        )

    def _put_timers(self, moments: Mapping[str, datetime]) -> None:
        key = Keys(self._environment["BATON_KEY_PREFIX"]).of(QUEUE).timers
        with redis.Redis.from_url(self._environment["BATON_REDIS_URL"]) as client:
            rest = iter(moments.items())
            while some := dict(itertools.islice(rest, 5_000)):
                client.zadd(key, {each: at.timestamp() * 1000 for each, at in some.items()})


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Measure beside few, then beside many."""
    many = int(os.environ.get("BATON_BENCH_FLAT") or (20_000 if quick else 1_000_000))
    repeats = 50 if quick else 150
    sizes = [(FEW, _READY_AT_LEAST), (many, max(_READY_AT_LEAST, many // 10))]
    costs = compare(site, sizes, repeats=repeats)
    beside_few, beside = (f"beside {w:,} waiting + {r:,} ready" for w, r in sizes)
    return [_figure(name, beside_few, few, beside, crowd) for name, (few, crowd) in costs.items()]


def compare(
    site: Site, sizes: Sequence[tuple[int, int]], *, repeats: int, page: int = 500
) -> dict[str, list[Cost]]:
    """Return what each operation costs beside each of these numbers (waiting, ready).

    The calls take turns, so that what else the machine does hits all of them alike.
    """
    with ExitStack() as stack:
        crowds = []
        for waiting, ready in sizes:
            environment = stack.enter_context(fresh_database(site, lease=600))
            crowd = Crowd(environment, waiting=waiting, ready=ready, page=page)
            stack.callback(crowd.close)
            crowd.seed()
            crowds.append(crowd)
        all_operations = [crowd.operations() for crowd in crowds]
        costs: dict[str, list[Cost]] = {}
        for name in all_operations[0]:
            operations = [each[name] for each in all_operations]
            turns = _COSTLY if operations[0].is_costly else repeats
            calls = [[_timed(operation) for operation in operations] for _ in range(turns)]
            costs[name] = [
                Cost(calls_ms=list(own), examined=crowd.examined(operation))
                for crowd, operation, own in zip(
                    crowds, operations, zip(*calls, strict=True), strict=True
                )
            ]
    return costs


def _timed(operation: Operation) -> float:
    if operation.prepare is not None:
        operation.prepare()
    begun = time.perf_counter()
    operation.act()
    return (time.perf_counter() - begun) * 1000


def _figure(name: str, beside_few: str, few: Cost, beside: str, many: Cost) -> Figure:
    return Figure(
        name=f"{name}, {beside}, p50",
        value=percentile(many.calls_ms, 50),
        unit="ms",
        raw_name=beside_few,
        raw=percentile(few.calls_ms, 50),
        aim="<= 1.5 x",
        note=(
            f"keys and documents examined: {many.examined}, beside few {few.examined};"
            f" p99 {shown(percentile(many.calls_ms, 99))} ms,"
            f" beside few {shown(percentile(few.calls_ms, 99))} ms"
        ),
    )


def _settle(client: Any) -> None:
    """Write everything to disk, and wait until the cache has little left to write."""
    client.admin.command("fsync")
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        cache = client.admin.command("serverStatus")["wiredTiger"]["cache"]
        dirty = cache["tracked dirty bytes in the cache"]
        if dirty < _DIRTY_SHARE * cache["maximum bytes configured"]:
            return
        time.sleep(0.5)
    raise RuntimeError(f"the inserts had not settled after {_SETTLE_SECONDS:.0f} s")


def _keys(name: Callable[[int], str], count: int) -> Iterator[str]:
    return (name(number) for number in range(1, count))


def _sleeper(number: int) -> str:
    return f"sleeper:{number}"


def _ready(number: int) -> str:
    return f"ready:{number}"
