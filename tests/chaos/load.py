"""Steady work for the fleet: submitted through the kernel and the outbox, and remembered.

Guarantees that whatever was accepted is in `accepted` with the ends it may have, and that a
submission whose answer was uncertain is repeated until it is certain. Leaves judging to the judge.
"""

import contextlib
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.models import ContentJob
from jobs.runtime import get_kernel
from jobs.services import content
from jobs.services.errors import AlreadyTerminal
from kernel import Plan, Unavailable, workflow_id_of
from tests.chaos.business import plans

TENANT = "chaos"
COMPLETED, FAILED, CANCELED = "completed", "failed", "canceled"
#: Listeners of one event.
LISTENERS = 12

Later = tuple[float, Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Promise:
    """What was accepted: the ends it may have, and the round it should end in."""

    ends: tuple[str, ...]
    round: int = 1


@dataclass(slots=True)
class Load:
    """Submits work until it is told to stop; one thread calls `run`."""

    lots: random.Random
    page: str
    #: Submissions a second.
    rate: float
    accepted: dict[str, Promise] = field(default_factory=dict)
    jobs: dict[str, Promise] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    _numbers: int = 0
    _later: deque[Later] = field(default_factory=deque)

    def run(self) -> None:
        """Submit, and see to what is to be done later, until stopped; then finish the rest."""
        kinds = [kind for kind, _ in _KINDS]
        weights = [weight for _, weight in _KINDS]
        while not self.stopping.wait(1 / self.rate):
            self._guarded(lambda: self.lots.choices(kinds, weights=weights)[0](self))
            self._do_later()
        until = time.monotonic() + 120
        while self._later and time.monotonic() < until:
            self._do_later(at_once=True)
            threading.Event().wait(0.2)
        if self._later:
            self.errors.append(f"{len(self._later)} submissions never got an answer")

    def start(self, plan: Plan, key: str, promise: Promise, value: object = None) -> None:
        """Register a round; again and again until the answer is certain."""
        try:
            result = get_kernel().start_or_resume(
                plan, biz_key=key, input=value, fencing_token=promise.round, timeout=2.0
            )
        except Unavailable:
            self.later(1.0, lambda: self.start(plan, key, promise, value))
            return
        if not result.accepted:
            self.errors.append(f"{key}, round {promise.round} was refused: {result.reason}")
            return
        self.accepted[key] = promise
        if self.lots.random() < 0.1:  # a publisher that did not hear the answer
            self.later(0.5, lambda: self._repeat(plan, key, promise, value))

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do something in a while."""
        self._later.append((time.monotonic() + seconds, call))

    def key(self, kind: str) -> str:
        """Return a biz_key nobody used."""
        self._numbers += 1
        return f"{kind}:{self._numbers}"

    def _repeat(self, plan: Plan, key: str, promise: Promise, value: object) -> None:
        with contextlib.suppress(Unavailable):
            get_kernel().start_or_resume(
                plan, biz_key=key, input=value, fencing_token=promise.round, timeout=2.0
            )

    def _do_later(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        for _ in range(len(self._later)):
            due, call = self._later.popleft()
            if due <= now or at_once:
                self._guarded(call)
            else:
                self._later.append((due, call))

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a soak goes on and reports it in the end
            self.errors.append(f"{type(error).__name__}: {error}")


def _line(load: Load) -> None:
    load.start(plans.LINE, load.key("line"), Promise((COMPLETED,)), {"seconds": 0.1})


def _wave(load: Load) -> None:
    load.start(plans.WAVE, load.key("wave"), Promise((COMPLETED,)), {"seconds": 0.2})


def _flaky(load: Load) -> None:
    load.start(plans.FLAKY, load.key("flaky"), Promise((COMPLETED,)), {})


def _doomed(load: Load) -> None:
    """Fails for good in its first round; its user asks for another one then."""
    key = load.key("doomed")
    load.start(plans.FLAKY, key, Promise((FAILED,)), {"doomed": True})
    load.later(3.0, lambda: _retry(load, key))


def _retry(load: Load, key: str) -> None:
    try:
        found = get_kernel().find(biz_key=key, timeout=2.0)
    except Unavailable:
        found = None
    if found is None or not found.status.is_terminal:
        load.later(2.0, lambda: _retry(load, key))
        return
    load.start(plans.FLAKY, key, Promise((COMPLETED,), round=2), {"doomed": True})


def _sleepy(load: Load) -> None:
    nap = load.lots.uniform(0.2, 6.0)
    load.start(plans.SLEEPY, load.key("sleepy"), Promise((COMPLETED,)), {"nap": nap})


def _limited(load: Load) -> None:
    """Several at once, so that some have to wait for a permit."""
    for _ in range(4):
        load.start(plans.LIMITED, load.key("limited"), Promise((COMPLETED,)), {})


def _quitter(load: Load) -> None:
    load.start(plans.QUITTER, load.key("quitter"), Promise((CANCELED,)), {})


def _event(load: Load) -> None:
    """An event and its listeners, in any order: bells come early, in time, and twice."""
    event = load.key("event")
    calls: list[Callable[[], None]] = [
        lambda number=number: load.start(  # type: ignore[misc]
            plans.LISTENER, plans.listener(event, number), Promise((COMPLETED,)), {"event": event}
        )
        for number in range(LISTENERS)
    ]
    fanout = {"event": event, "listeners": LISTENERS}
    calls.append(lambda: load.start(plans.FANOUT, event, Promise((COMPLETED,)), fanout))
    calls += [
        lambda number=number: _ring(event, number)  # type: ignore[misc]
        for number in range(0, LISTENERS, 3)
    ]
    load.lots.shuffle(calls)
    for call in calls:
        load.later(load.lots.uniform(0.0, 2.0), call)


def _ring(event: str, number: int) -> None:
    with contextlib.suppress(Unavailable):
        get_kernel().deliver_signal(
            workflow_id=workflow_id_of(plans.listener(event, number)),
            signal_type=plans.EVENT,
            wait_key=event,
            generation=1,
            signal_id=f"{event}:{number}",
            timeout=2.0,
        )


def _superseded(load: Load) -> None:
    """Its business object is not wanted any more, some time after it was accepted."""
    key = load.key("superseded")
    load.start(plans.LINE, key, Promise((CANCELED, COMPLETED)), {"seconds": 0.5})
    load.later(load.lots.uniform(0.0, 2.0), lambda: _supersede(load, key))


def _supersede(load: Load, key: str) -> None:
    try:
        get_kernel().supersede(workflow_id_of(key), reason="replaced by a newer one", timeout=2.0)
    except Unavailable:
        load.later(1.0, lambda: _supersede(load, key))


def _article(load: Load) -> None:
    job = content.submit_job(tenant=TENANT, kind="article", source_url=load.page)
    load.jobs[job.pk] = Promise(("ready",))


def _canceled_article(load: Load) -> None:
    job = content.submit_job(tenant=TENANT, kind="article", source_url=load.page)
    load.jobs[job.pk] = Promise(("canceled", "ready"))
    load.later(load.lots.uniform(0.0, 1.5), lambda: _cancel(job))


def _cancel(job: ContentJob) -> None:
    with contextlib.suppress(AlreadyTerminal):
        content.cancel_job(TENANT, job.pk)


_KINDS: list[tuple[Callable[[Load], None], int]] = [
    (_line, 6),
    (_wave, 4),
    (_flaky, 3),
    (_doomed, 2),
    (_sleepy, 4),
    (_quitter, 1),
    (_limited, 2),
    (_event, 1),
    (_superseded, 2),
    (_article, 4),
    (_canceled_article, 2),
]
