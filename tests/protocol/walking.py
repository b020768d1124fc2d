"""Random walks through the protocol: what is done next is drawn, every commit is compared.

Guarantees that each commit is evaluated twice, in memory and by MongoDB, from the same document.
Leaves the judgement which of both is wrong to the reader of the difference.
"""

import itertools
import random
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from hypothesis import strategies as st

from kernel import OnFailed, Plan, Priority, RetryPolicy, Sleep, WaitForSignal, Yield
from kernel.model import InstanceStatus, Signal, StepStatus, WaitKind, WorkflowInstance
from kernel.protocol import (
    beginning,
    finalizing,
    homecoming,
    owning,
    queueing,
    readiness,
    settling,
    signaling,
    spans,
    starting,
)
from kernel.protocol.apply import Document, apply_changes, apply_commit
from kernel.protocol.coming_home import home_alone, home_last
from kernel.protocol.commit import Commit
from kernel.protocol.holding import held_commit
from kernel.protocol.outcomes import Canceled, Completed, Directed, Failed, Outcome
from kernel.protocol.resources import Refusal
from kernel.store import InstanceStore, StoreClock

#: Delays, in seconds, are none or far longer than a walk takes on a busy machine, and what was put
#: off at about the same time is due together: a walk must repeat itself.
DELAY = 600
DELAYS = st.sampled_from([0, DELAY])
MARGIN_MS = 60_000
LEASE_MS = 1000 * DELAY
MAX_RECOVERIES = 2
#: In memory and in the database "now" is read at two moments.
TOLERANCE = timedelta(seconds=5)

KEYS = st.text(alphabet="ab$.~_ é", max_size=4)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False).filter(lambda f: abs(f) != float("inf"))
    | st.text(alphabet="a$.~\x00é", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
#: Outcomes with how often they happen; a cancel ends the walk, so it is rare.
OUTCOMES: list[tuple[st.SearchStrategy[Outcome], int]] = [
    (st.builds(Completed, JSON), 10),
    (
        st.builds(lambda d, c: Directed(Sleep(d, checkpoint=c)), DELAYS, JSON),
        4,
    ),
    (
        st.builds(
            lambda p, c: Directed(WaitForSignal("$kind", "a.b", poll_after=p, checkpoint=c)),
            st.none() | DELAYS,
            JSON,
        ),
        4,
    ),
    (st.builds(lambda c: Directed(Yield(checkpoint=c)), JSON), 3),
    (
        st.builds(
            lambda retryable, keeps: Failed(
                code="$code",
                message="$message",
                retryable=retryable,
                keeps_checkpoint=keeps,
            ),
            st.booleans(),
            st.booleans(),
        ),
        10,
    ),
    (st.just(Canceled("gone")), 1),
]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Linear plans and DAGs of one to five steps."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 5)))]
    if draw(st.integers(0, 3)) == 0:
        return Plan("walk.line", queue="work", steps=names)
    graph = {
        name: draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else []
        for i, name in enumerate(names)
    }
    return Plan("walk.graph", queue="work", steps=names, depends_on=graph)


class Walk:
    """One instance taken from its creation along random transitions."""

    def __init__(
        self, store: InstanceStore, clock: StoreClock, plan: Plan, data: Any, seed: int
    ) -> None:
        self.store, self.clock, self.plan, self.data = store, clock, plan, data
        self.random = random.Random(seed)
        biz_key = f"walk:{uuid.uuid4()}"  # Hypothesis repeats its seeds
        self.workflow_id = starting.workflow_id_of(biz_key)
        self.tokens = itertools.count(1)
        self.labels: list[str] = []
        self.policy = settling.Policy(
            has_success_finalizer=self.draw(st.booleans()),
            has_failure_finalizer=self.draw(st.booleans()),
            fusable=lambda _: True,
        )
        changes = starting.create_changes(
            plan,
            biz_key=biz_key,
            value=self.draw(JSON),
            fencing_token=1,
            priority=Priority.RECOVERY,
        )
        expected = apply_changes({}, changes, store.now())
        store.create(self.workflow_id, changes)
        self._compare("create", expected)

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    @property
    def document(self) -> Document:
        stored = self.store.read(self.workflow_id)
        assert stored is not None
        return {key: value for key, value in stored.document.items() if key != "_id"}

    @property
    def instance(self) -> WorkflowInstance:
        return WorkflowInstance.model_validate(self.document)

    def step(self) -> bool:
        """Take one random transition; False where none is left."""
        instance = self.instance
        if instance.claim_token is not None and instance.claimable_time > self.store.now():
            self._as_holder(instance)
            return True
        moves: list[Callable[[], None]] = []
        if instance.status is InstanceStatus.FAILED:
            moves = [self._replay]
        elif instance.status is InstanceStatus.WAITING:
            moves = [self._activate] * 8 + [self._signal] * 8 + [self._supersede]
        elif instance.status in owning.CLAIMABLE:
            moves = [self._claim] * 8 + [self._defer]
            if instance.blocked_on is not None and instance.blocked_on.reason.is_traffic:
                moves += [self._hand_on] * 3
            if instance.status is InstanceStatus.RUNNING:
                moves.append(self._raise)
        if not moves:
            return False
        self.random.choice(moves)()
        return True

    def commit(self, commit: Commit) -> None:
        """Write a commit and compare the document with the one computed in memory."""
        before = self.document
        expected = apply_commit(before, commit, self.store.now())
        assert self.store.commit(commit), commit
        self._compare(commit.label, expected)

    def _compare(self, label: str, expected: Document) -> None:
        self.labels.append(label)
        stored = self.document
        differences = list(differing(expected, stored))
        assert not differences, (label, self.labels, differences)
        spans = [state["times"] for state in stored["steps"].values() if "times" in state]
        assert all(ms >= 0 for each in spans for ms in each.values()), (label, spans)

    def _as_holder(self, instance: WorkflowInstance) -> None:
        chance = self.random.random()
        if chance < 0.08:
            self.clock.offset_ms += LEASE_MS + 1  # the holder dies
        elif chance < 0.12:
            self.commit(owning.hand_back(instance))
        elif chance < 0.17 and readiness.ready_steps(instance, self.store.now()):
            self.commit(owning.release(instance))
        elif chance < 0.20:
            running = [n for n, s in instance.steps.items() if s.status is StepStatus.RUNNING]
            self.commit(owning.free_dead(instance, self.random.choice([None, *running])))
        elif chance < 0.21 and instance.status in owning.SUPERSEDABLE:
            self._supersede()
        else:
            self._advance(instance)

    def _advance(self, instance: WorkflowInstance) -> None:
        action = readiness.next_action(instance, self.store.now(), max_recoveries=MAX_RECOVERIES)
        match action:
            case readiness.RunWave(steps):
                self._begin(instance, steps)
            case readiness.GiveUpLost(step):
                changes = homecoming.worker_lost(
                    instance, step, on_failed=self._on_failed(), deaths=3
                )
                self._last_home(step, changes, (step,))
            case readiness.RunFinalizer():
                self._finalize(instance)
            case readiness.EnterFailing(step):
                changes = settling.enter_failing(
                    instance, step, begin_finalizer=self.policy.has_failure_finalizer
                )
                self.commit(held_commit(instance, "enter failing", changes))
            case readiness.FinishCanceled():
                changes = settling.canceled(instance)
                self.commit(held_commit(instance, "finish canceled", changes, releases=True))
            case readiness.AllDone():
                end = settling.all_done(self.policy)
                self.commit(held_commit(instance, "all done", end.changes, releases=end.releases))
            case readiness.ActivateDue(steps):
                self.commit(owning.activate_held(instance, steps))
            case readiness.Release():
                self.commit(owning.release(instance))

    def _begin(self, instance: WorkflowInstance, steps: tuple[str, ...]) -> None:
        """Begin steps, but for those whose permits are refused; sometimes the workflow's are."""
        if self.random.random() < 0.1:
            self.commit(queueing.defer_workflow(instance, self._refusal(), self.store.now()))
            return
        refused = {name: self._refusal() for name in steps if self.random.random() < 0.15}
        granted = tuple(name for name in steps if name not in refused)
        if not granted:
            self.commit(queueing.defer(self.document, refused, self.store.now()))
            return
        self.commit(beginning.begin(instance, granted, refused))
        self._wave(granted)

    def _refusal(self) -> Refusal:
        names = ("$a", "b:c")[: self.random.choice([1, 2])]
        paused = self.random.random() < 0.2
        return Refusal(resources=names[:1], needs=names, retry_ms=1000 * DELAY, paused=paused)

    def _hand_on(self) -> None:
        instance = self.instance
        waiting = [n for n, s in instance.steps.items() if spans.is_in_line(s)]
        self.commit(queueing.hand_on(instance.workflow_id, instance.revision, waiting))

    def _wave(self, steps: tuple[str, ...]) -> None:
        """Bring begun steps home in random order; sometimes the process dies in between."""
        order = self.random.sample(steps, len(steps))
        while order:
            has_ended = readiness.settled_end(self.instance) is not None
            if self.random.random() < (0.8 if has_ended else 0.15):
                self.clock.offset_ms += LEASE_MS + 1
                return
            name = order.pop()
            changes = self._home(name)
            if order:
                self.commit(home_alone(self.instance, name, changes).commit)
                continue
            begins = self._last_home(name, changes, steps)
            steps, order = begins, list(begins)

    def _home(self, name: str) -> homecoming.Changes:
        return homecoming.come_home(
            self.instance,
            name,
            self._outcome(),
            retry=RetryPolicy(max_retry=2, backoff="fixed", initial=DELAY),
            on_failed=self._on_failed(),
            jitter=self.random.random(),
        )

    def _last_home(
        self, name: str, changes: homecoming.Changes, wave: tuple[str, ...]
    ) -> tuple[str, ...]:
        settled = partial(
            home_last,
            self.instance,
            self.document,
            name,
            changes,
            wave=wave,
            now=self.store.now(),
            policy=self.policy,
        )
        home = settled()
        if home.begins and self.random.random() < 0.3:
            home = settled(refused=dict.fromkeys(home.begins, self._refusal()))
        self.commit(home.commit)
        return home.begins

    def _finalize(self, instance: WorkflowInstance) -> None:
        record = instance.finalizer
        if record is None:
            end = InstanceStatus.FAILED
            self.commit(
                held_commit(
                    instance, "finish failed", settling.finish(instance, end), releases=True
                )
            )
            return
        moves = [
            lambda: self.commit(finalizing.begin(instance)),
            lambda: self.commit(finalizing.failed(instance, "$x", "$y", jitter=0.5)),
            lambda: self.commit(finalizing.poisoned(instance)),
            lambda: self.commit(
                held_commit(
                    instance,
                    "finish failed",
                    settling.finish(instance, InstanceStatus.FAILED),
                    releases=True,
                )
            ),
        ]
        self.random.choice(moves)()

    def _claim(self) -> None:
        wait = self.instance.claimable_time - self.store.now()
        self.clock.offset_ms += max(0, int(wait / timedelta(milliseconds=1)) + MARGIN_MS)
        token = f"token-{next(self.tokens)}"
        changes = owning.claim_changes(token, "$owner", lease_ms=LEASE_MS)
        expected = apply_changes(self.document, changes, self.store.now())
        claimed = self.store.claim(
            self.workflow_id,
            fingerprints=[self.plan.fingerprint],
            token=token,
            owner="$owner",
            lease_ms=LEASE_MS,
        )
        assert claimed is not None
        self._compare("claim", expected)

    def _signal(self) -> None:
        wait = next((w for w in self.instance.waits if w.kind is WaitKind.SIGNAL), None)
        if wait is None:
            self._activate()
            return
        signal = Signal(
            signal_id=f"$signal-{next(self.tokens)}",
            workflow_id=self.workflow_id,
            signal_type=wait.signal_type or "",
            wait_key=wait.wait_key or "",
            generation=wait.generation,
        )
        commit = signaling.activate(self.instance, [signal])
        assert commit is not None
        self.commit(commit)

    def _activate(self) -> None:
        self.clock.offset_ms += 1000 * DELAY + MARGIN_MS
        commit = owning.activate_due(self.instance, self.store.now())
        if commit is None:
            self._signal()
        else:
            self.commit(commit)

    def _defer(self) -> None:
        self.commit(owning.defer_incompatible(self.instance, "f" * 64, seconds=60))

    def _raise(self) -> None:
        if self.instance.priority > 0:
            self.commit(
                starting.raise_priority(self.instance, Priority(self.instance.priority - 1))
            )

    def _supersede(self) -> None:
        self.commit(owning.supersede(self.instance, "$reason"))

    def _replay(self) -> None:
        instance = self.instance
        self.commit(
            starting.replay(
                instance,
                value=self.draw(JSON),
                fencing_token=instance.fencing_token + 1,
                priority=Priority.ASYNC,
            )
        )
        states = self.instance.steps.values()
        assert all(s.is_done or s.status is StepStatus.PENDING for s in states)

    def _outcome(self) -> Outcome:
        strategies, weights = zip(*OUTCOMES, strict=True)
        [strategy] = self.random.choices(strategies, weights)
        outcome: Outcome = self.draw(strategy)
        return outcome

    def _on_failed(self) -> OnFailed:
        return self.random.choice(list(OnFailed))


def differing(left: object, right: object, path: str = "$") -> Iterator[object]:
    """Yield every place where two documents differ by more than the moment of their clock."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() | right.keys():
            absent = object()
            yield from differing(left.get(key, absent), right.get(key, absent), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for i, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differing(one, other, f"{path}[{i}]")
    elif not _alike(left, right, path):
        yield path, left, right


def _alike(left: object, right: object, path: str) -> bool:
    if isinstance(left, datetime) and isinstance(right, datetime):
        return abs(left - right) <= TOLERANCE
    if path.endswith("_ms") and isinstance(left, int) and isinstance(right, int):
        return abs(left - right) <= TOLERANCE / timedelta(milliseconds=1)
    return type(left) is type(right) and left == right
