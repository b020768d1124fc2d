"""What is done to the fleet while it works, and how each fault ends.

```
pick (seeded) ─▶ do ─▶ [lasts for a while] ─▶ undo
```

Guarantees that the draws follow from the seed, that a target is hurt by one fault at a time, and
that every fault is written down with its moment. Leaves healing at the end to the fleet.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import redis

from tests.chaos.fleet import LEASE_SECONDS, Fleet
from tests.kit.processes import Child

Undo = Callable[[], object]
#: Faults that are drawn before a turn is given up: some find nothing to hurt.
_TRIES = 5


@dataclass(slots=True)
class Hurt:
    """A fault that lasts: what is hurt until when, and how it ends."""

    target: str
    until: float
    undo: Undo


@dataclass(slots=True)
class Faults:
    """Hurts a fleet, one fault after the other."""

    fleet: Fleet
    lots: random.Random
    #: Seconds between two faults, on average.
    pause: float
    log: list[str] = field(default_factory=list)
    _hurts: list[Hurt] = field(default_factory=list)
    _next: float = 0.0
    _begun: float = field(default_factory=time.monotonic)

    def turn(self) -> None:
        """End what is over, and begin the next fault when it is its time."""
        now = time.monotonic()
        for hurt in [hurt for hurt in self._hurts if hurt.until <= now]:
            self._hurts.remove(hurt)
            hurt.undo()
        if now < self._next:
            return
        self._next = now + self.lots.uniform(0.5, 1.5) * self.pause
        for _ in range(_TRIES):
            if self._do_one():
                return

    def _do_one(self) -> bool:
        """Do one fault; False when what it needs is hurt already or not there."""
        kind = self.lots.choices([*_KINDS], weights=[weight for weight, _ in _KINDS.values()])[0]
        for said, hurt in _KINDS[kind][1](self):
            self._note(f"{kind}: {said}")
            if hurt is not None:
                self._hurts.append(hurt)
            return True
        return False

    def end(self) -> None:
        """End everything that lasts."""
        for hurt in self._hurts:
            hurt.undo()
        self._hurts.clear()

    def is_hurt(self, target: str) -> bool:
        """Tell whether a fault lasts on a target."""
        return any(hurt.target == target for hurt in self._hurts)

    def lasting(self, target: str, low: float, high: float, undo: Undo) -> tuple[float, Hurt]:
        """Return for how long, and the fault that ends then."""
        seconds = self.lots.uniform(low, high)
        return seconds, Hurt(target, time.monotonic() + seconds, undo)

    def worker(self) -> tuple[str, Child] | None:
        """Choose a worker that nothing is done to and that runs."""
        name = self.lots.choice(self.fleet.names)
        child = self.fleet.workers[name]
        if self.is_hurt(name) or child.process.poll() is not None:
            return None
        return name, child

    def _note(self, line: str) -> None:
        self.log.append(f"{time.monotonic() - self._begun:7.1f} s  {line}")


Fault = Iterator[tuple[str, Hurt | None]]


def _kill_child(faults: Faults) -> Fault:
    if (found := _child(faults)) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(found[1], signal.SIGKILL)
            yield f"{found[0]}, process {found[1]}", None


def _freeze_child(faults: Faults) -> Fault:
    """Past its lease, and then it goes on as if nothing had been."""
    if (found := _child(faults)) is None:
        return
    name, pid = found
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        seconds, hurt = faults.lasting(
            name, LEASE_SECONDS, 2.5 * LEASE_SECONDS, lambda: _continue(pid)
        )
        yield f"{name}, process {pid}, {seconds:.1f} s", hurt


def _kill_worker(faults: Faults) -> Fault:
    if (found := faults.worker()) is None:
        return
    name, worker = found
    worker.kill_group()
    seconds, hurt = faults.lasting(name, 0.2, 3.0, lambda: faults.fleet.start_worker(name))
    yield f"{name}, back in {seconds:.1f} s", hurt


def _freeze_worker(faults: Faults) -> Fault:
    if (found := faults.worker()) is None:
        return
    name, worker = found
    worker.send_group(signal.SIGSTOP)
    seconds, hurt = faults.lasting(
        name, LEASE_SECONDS, 2.5 * LEASE_SECONDS, lambda: _continue_group(worker)
    )
    yield f"{name}, {seconds:.1f} s", hurt


def _deploy(faults: Faults) -> Fault:
    """Stop a worker as a deploy does, and start its successor beside it."""
    if (found := faults.worker()) is None:
        return
    name, worker = found
    worker.send(signal.SIGTERM)
    skew = faults.fleet.start_worker(name)
    yield f"{name}, the next one's clock is off by {skew:+g} s", None


def _stop_redis(faults: Faults) -> Fault:
    if faults.is_hurt("redis"):
        return
    server = faults.fleet.redis
    server.kill()
    seconds, hurt = faults.lasting("redis", 0.5, 8.0, server.start)
    yield f"{seconds:.1f} s", hurt


def _hang_redis(faults: Faults) -> Fault:
    if faults.is_hurt("redis"):
        return
    pid = faults.fleet.redis.pid
    os.kill(pid, signal.SIGSTOP)
    seconds, hurt = faults.lasting("redis", 0.5, 6.0, lambda: _continue(pid))
    yield f"{seconds:.1f} s", hurt


def _flush_redis(faults: Faults) -> Fault:
    if faults.is_hurt("redis"):
        return
    with redis.Redis.from_url(faults.fleet.redis.url) as client:
        client.flushall()
    yield "everything", None


def _kill_mongod(faults: Faults) -> Fault:
    if faults.is_hurt("mongod"):
        return
    server = faults.fleet.mongo
    server.kill()
    seconds, hurt = faults.lasting("mongod", 0.1, 2.5 * LEASE_SECONDS, server.start)
    yield f"{seconds:.1f} s", hurt


def _hang_mongod(faults: Faults) -> Fault:
    if faults.is_hurt("mongod"):
        return
    pid = faults.fleet.mongo.pid
    os.kill(pid, signal.SIGSTOP)
    seconds, hurt = faults.lasting("mongod", 0.5, 6.0, lambda: _continue(pid))
    yield f"{seconds:.1f} s", hurt


def _double_beat(faults: Faults) -> Fault:
    if faults.is_hurt("beat"):
        return
    faults.fleet.start_beat()
    seconds, hurt = faults.lasting("beat", 4.0, 12.0, faults.fleet.stop_beat)
    yield f"{seconds:.1f} s", hurt


def _remove_beat(faults: Faults) -> Fault:
    if faults.is_hurt("beat"):
        return
    faults.fleet.stop_beat()
    seconds, hurt = faults.lasting("beat", 4.0, 12.0, faults.fleet.start_beat)
    yield f"{seconds:.1f} s", hurt


def _child(faults: Faults) -> tuple[str, int] | None:
    if (found := faults.worker()) is None:
        return None
    children = faults.fleet.children_of(found[0])
    return (found[0], faults.lots.choice(children)) if children else None


def _continue(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _continue_group(worker: Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        worker.send_group(signal.SIGCONT)


#: Kind → how often it is chosen, and what it does.
_KINDS: dict[str, tuple[int, Callable[[Faults], Fault]]] = {
    "SIGKILL of a child": (6, _kill_child),
    "SIGSTOP of a child": (4, _freeze_child),
    "SIGKILL of a worker": (4, _kill_worker),
    "SIGSTOP of a worker": (3, _freeze_worker),
    "deploy": (3, _deploy),
    "Redis stopped": (2, _stop_redis),
    "Redis hung": (2, _hang_redis),
    "Redis flushed": (3, _flush_redis),
    "mongod killed": (2, _kill_mongod),
    "mongod hung": (2, _hang_mongod),
    "beat doubled": (1, _double_beat),
    "beat removed": (1, _remove_beat),
}
