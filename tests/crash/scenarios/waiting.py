"""Durable waiting killed at every command: suspends, wakings, deliveries and a fan-out's pages.

Guarantees under test: no signal is lost, none counts twice, a wait is ended exactly once, and what
a death leaves half done somebody finishes without being told (design 4).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from pymongo import MongoClient

from kernel import (
    ActivityContext,
    Definition,
    Plan,
    Signal,
    Sleep,
    Step,
    WaitForSignal,
    Yield,
    workflow_id_of,
)
from kernel.store import Connection, SignalInbox
from tests.crash.scenarios.scenario import Entries, Scenario
from tests.crash.stage import QUEUE, Stage
from tests.crash.world import World

LISTENING = Plan("crash.listening", queue=QUEUE, steps=["listen", "after"])
BRANCHING = Plan(
    "crash.branching",
    queue=QUEUE,
    steps=["nap", "listen", "work", "join"],
    depends_on={"nap": [], "listen": [], "work": [], "join": ["nap", "listen", "work"]},
)
NAPPING = Plan("crash.napping", queue=QUEUE, steps=["nap"])
FANOUT = Plan("crash.fanout", queue=QUEUE, steps=["ring"])
POLL_SECONDS = 30
NAP_SECONDS = 20
SUBSCRIBERS = 3
PAGE = 2


class _Listening(Scenario):
    """One instance that waits for the signal `one`, then does one thing more."""

    names: ClassVar[tuple[str, ...]] = ("one",)
    entries: ClassVar[Entries | None] = {("one", 1, "listen"): 2, ("one", 1, "after"): 1}
    poll_after: ClassVar[float | None] = None
    woken_by: ClassVar[tuple[str, ...]] = ("signal",)

    def definitions(self, stage: Stage) -> list[Definition]:
        def work(ctx: ActivityContext) -> dict[str, Any]:
            stage.ledger.enter(ctx)
            return {}

        def listen(ctx: ActivityContext) -> dict[str, Any] | WaitForSignal:
            stage.ledger.enter(ctx)
            if ctx.resume is None:
                return WaitForSignal("s", "k", poll_after=self.poll_after, checkpoint={"n": 1})
            return {"kind": ctx.resume.kind, "checkpoint": ctx.checkpoint}

        return [Definition(LISTENING, steps={"listen": Step(listen), "after": Step(work)})]

    def biz_keys(self, world: World) -> list[str]:
        return [world.biz_key(name) for name in self.names]

    def recover(self, stage: Stage) -> None:
        self.repeat(stage)
        super().recover(stage)

    def repeat(self, stage: Stage) -> None:
        """Do again what the sender does; most never come back."""

    def check(self, stage: Stage) -> Iterator[str]:
        for key in self.biz_keys(stage.world):
            instance = stage.find(key)
            if instance.status != "completed":
                yield f"{key} ended {instance.status}"
            elif (kind := instance.output["listen"]["kind"]) not in self.woken_by:
                yield f"{key} was woken by {kind}"
            elif instance.output["listen"]["checkpoint"] != {"n": 1}:
                yield f"{key} came back with {instance.output['listen']}"
        yield from _of_inbox(stage, *self.names)


class SuspendAndLook(_Listening):
    """A suspend whose signal is in the inbox already, the sender long gone."""

    def arrange(self, stage: Stage) -> None:
        stage.start(LISTENING)
        _ring(stage)

    def act(self, stage: Stage) -> None:
        stage.drain()


class Deliver(_Listening):
    """A delivery to an instance that waits, and the claim that follows.

    Once its signal is in the inbox, the sender never comes back.
    """

    def arrange(self, stage: Stage) -> None:
        stage.start(LISTENING)
        stage.drain()

    def act(self, stage: Stage) -> None:
        _ring(stage)
        stage.drain()

    def repeat(self, stage: Stage) -> None:
        if not _inbox(stage, "one"):
            _ring(stage)


class DeliverWithoutRedis(Deliver):
    """The same from MongoDB alone."""

    with_redis = False


class DeliverPage(_Listening):
    """A page of signals, one of them for nobody yet, delivered twice; then the claims it brings.

    Its sender is a workflow step in real life, so it comes back until it got its answer.
    """

    names = ("one", "two", "three")
    entries: ClassVar[Entries | None] = {
        (name, 1, step): n for name in names for step, n in (("listen", 2), ("after", 1))
    }

    def arrange(self, stage: Stage) -> None:
        for name in self.names[:2]:
            stage.start(LISTENING, name)
        stage.drain()

    def act(self, stage: Stage) -> None:
        self._ring_all(stage)
        stage.start(LISTENING, self.names[2])
        stage.drain()
        self._ring_all(stage)

    def repeat(self, stage: Stage) -> None:
        stage.start(LISTENING, self.names[2])
        if len(_inbox(stage, *self.names)) < len(self.names):
            self._ring_all(stage)

    def _ring_all(self, stage: Stage) -> None:
        stage.kernel.deliver_signals([_identity(stage, name) for name in self.names])


class DeliverPageWithoutRedis(DeliverPage):
    """The same from MongoDB alone."""

    with_redis = False


class TimersDue(Scenario):
    """Three sleepers due at one moment, woken by one tick."""

    names = ("one", "two", "three")
    entries: ClassVar[Entries | None] = {(name, 1, "nap"): 2 for name in names}

    def definitions(self, stage: Stage) -> list[Definition]:
        def nap(ctx: ActivityContext) -> Any:
            stage.ledger.enter(ctx)
            return Sleep(NAP_SECONDS) if ctx.resume is None else {}

        return [Definition(NAPPING, steps={"nap": Step(nap)})]

    def biz_keys(self, world: World) -> list[str]:
        return [world.biz_key(name) for name in self.names]

    def arrange(self, stage: Stage) -> None:
        stage.kernel.tick()
        for name in self.names:
            stage.start(NAPPING, name)
        stage.drain()

    def act(self, stage: Stage) -> None:
        stage.advance(NAP_SECONDS + 1)
        stage.kernel.tick()
        stage.drain()

    def check(self, stage: Stage) -> Iterator[str]:
        for key in self.biz_keys(stage.world):
            if (status := stage.find(key).status) != "completed":
                yield f"{key} ended {status}"


class DeliverOrPoll(_Listening):
    """A request process that may die before its signal is stored: the poll time covers it."""

    poll_after = POLL_SECONDS
    woken_by = ("signal", "poll")

    def arrange(self, stage: Stage) -> None:
        stage.kernel.tick()
        stage.start(LISTENING)
        stage.drain()

    def act(self, stage: Stage) -> None:
        _ring(stage)
        stage.advance(POLL_SECONDS + 1)
        stage.kernel.tick()
        stage.drain()


class PollAndLateSignal(DeliverOrPoll):
    """The poll time comes first; the signal finds nobody waiting."""

    def act(self, stage: Stage) -> None:
        stage.advance(POLL_SECONDS + 1)
        stage.kernel.tick()
        _ring(stage)
        stage.drain()


class MatchByReconcile(_Listening):
    """Pending signals whose sender and holder both died, found by the look-around."""

    names = ("one", "two")
    entries: ClassVar[Entries | None] = {
        (name, 1, step): n for name in names for step, n in (("listen", 2), ("after", 1))
    }

    def arrange(self, stage: Stage) -> None:
        for name in self.names:
            stage.start(LISTENING, name)
        stage.drain()
        connection = Connection(stage.world.mongo_url, database=stage.world.database)
        inbox = SignalInbox(connection, stage.kernel.clock)
        assert all(inbox.insert(Signal(**_identity(stage, name))) for name in self.names)
        connection.close()

    def act(self, stage: Stage) -> None:
        stage.kernel.reconcile()
        stage.drain()


class Branching(Scenario):
    """A graph in which one branch sleeps, one waits for a signal, and one works."""

    entries: ClassVar[Entries | None] = {
        ("one", 1, "nap"): 2,
        ("one", 1, "listen"): 2,
        ("one", 1, "work"): 1,
        ("one", 1, "join"): 1,
    }
    width = 3

    def definitions(self, stage: Stage) -> list[Definition]:
        def branch(ctx: ActivityContext) -> Any:
            stage.ledger.enter(ctx)
            if ctx.step == "nap" and ctx.resume is None:
                return Sleep(NAP_SECONDS)
            if ctx.step == "listen" and ctx.resume is None:
                return WaitForSignal("s", "k")
            return {"by": ctx.resume.kind if ctx.resume else None}

        return [Definition(BRANCHING, steps={name: Step(branch) for name in BRANCHING.steps})]

    def arrange(self, stage: Stage) -> None:
        stage.kernel.tick()
        stage.start(BRANCHING)

    def act(self, stage: Stage) -> None:
        stage.drain()
        _ring(stage)
        stage.drain()
        stage.advance(NAP_SECONDS + 1)
        stage.kernel.tick()
        stage.drain()

    def recover(self, stage: Stage) -> None:
        _ring(stage)
        super().recover(stage)

    def check(self, stage: Stage) -> Iterator[str]:
        output = stage.find(stage.world.biz_key()).output
        by = {name: value["by"] for name, value in output.items()}
        if by != {"nap": "timer", "listen": "signal", "work": None, "join": None}:
            yield f"branches came back by {by}"
        yield from _of_inbox(stage, "one")


class FanOut(_Listening):
    """A workflow that rings at every subscriber, a page a call, and yields in between."""

    names = tuple(f"subscriber-{n}" for n in range(SUBSCRIBERS))
    entries: ClassVar[Entries | None] = {
        **{(name, 1, step): n for name in names for step, n in (("listen", 2), ("after", 1))},
        ("fanout", 1, "ring"): 2,
    }

    def definitions(self, stage: Stage) -> list[Definition]:
        def ring(ctx: ActivityContext) -> dict[str, Any] | Yield:
            stage.ledger.enter(ctx)
            begin = ctx.checkpoint or 0
            page = self.names[begin : begin + PAGE]
            stage.kernel.deliver_signals([_identity(stage, name) for name in page])
            if begin + PAGE < SUBSCRIBERS:
                return Yield(checkpoint=begin + PAGE)
            return {"rung": SUBSCRIBERS}

        return [*super().definitions(stage), Definition(FANOUT, steps={"ring": Step(ring)})]

    def biz_keys(self, world: World) -> list[str]:
        return [*super().biz_keys(world), world.biz_key("fanout")]

    def arrange(self, stage: Stage) -> None:
        for name in self.names:
            stage.start(LISTENING, name)
        stage.drain()
        stage.start(FANOUT, "fanout")

    def act(self, stage: Stage) -> None:
        stage.drain()

    def check(self, stage: Stage) -> Iterator[str]:
        fanout = stage.find(stage.world.biz_key("fanout"))
        if (fanout.status, fanout.output.get("ring")) != ("completed", {"rung": SUBSCRIBERS}):
            yield f"the fan-out ended {fanout.status} with {fanout.output}"
        for name in self.names:
            instance = stage.find(stage.world.biz_key(name))
            if instance.output.get("listen", {}).get("kind") != "signal":
                yield f"{name} ended {instance.status} with {instance.output}"
        yield from _of_inbox(stage, *self.names)


def _ring(stage: Stage, name: str = "one") -> bool:
    """Deliver the one signal of the instance `name`."""
    return stage.kernel.deliver_signal(**_identity(stage, name))


def _identity(stage: Stage, name: str) -> dict[str, Any]:
    return {
        "workflow_id": workflow_id_of(stage.world.biz_key(name)),
        "signal_type": "s",
        "wait_key": "k",
        "signal_id": stage.world.biz_key(name),
    }


def _inbox(stage: Stage, *names: str) -> list[dict[str, Any]]:
    ids = [stage.world.biz_key(name) for name in names]
    with MongoClient[dict[str, Any]](stage.world.mongo_url) as client:
        inbox = client[stage.world.database]["workflow_signals"]
        return list(inbox.find({"signal_id": {"$in": ids}}))


def _of_inbox(stage: Stage, *names: str) -> Iterator[str]:
    for row in _inbox(stage, *names):
        if row["status"] == "pending":
            yield f"{row['signal_id']} is pending for ever"
