"""The processes of all schedules of one shard, and what bringing an instance to its end takes.

Guarantees that schedules do not meet: each has its own instances and queue, and is at its end
before the next one begins. Time passes for one instance alone, by moving its times back. Leaves
what is done to the case.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bson import CodecOptions
from pymongo import MongoClient, ReturnDocument
from pymongo.collection import Collection

import kernel.engine.committing as committing
from kernel import InstanceStatus, Kernel, KernelConfig, Plan, WorkflowInstance, workflow_id_of
from kernel.definition import Definition
from kernel.hints import Hints, NoHints
from kernel.store.codec import from_stored
from tests.interleaving.changes import Watch
from tests.interleaving.choices import Choices
from tests.interleaving.rumours import Rumours
from tests.interleaving.schedule import Process, Schedule
from tests.interleaving.scripts import SIGNAL, Script, Scripts
from tests.interleaving.wire import Command, Wire, deliver

#: Seconds; longer than any schedule, so that no renewal comes between.
_LEASE_SECONDS = 600
#: What passes at once: longer than every lease, backoff and wait but that of a poisoned finalizer.
_LONG_MS = 3_600_000 * 2
#: Rounds of looking after which an instance that has not ended never will.
_ROUNDS_MAX = 40
#: Processes of the actors; one more looks on and brings everything to its end.
PROCESSES = 5


class InTurn:
    """The threads of a wave, one after the other, so that a seed gives the same order again."""

    def submit(self, call: Callable[[], Any]) -> Any:
        """Run `call` at once."""
        from concurrent.futures import Future

        future: Future[Any] = Future()
        try:
            future.set_result(call())
        except BaseException as exc:  # noqa: BLE001 - handed to whoever asks for the result
            future.set_exception(exc)
        return future

    def close(self) -> None:
        """Hold nothing."""


@dataclass
class Run:
    """One schedule's instances: their names, scripts, and what was seen."""

    stage: "Stage"
    queue: str
    of: Definition
    scripts: dict[str, Script]
    watches: dict[str, Watch] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    signals: set[str] = field(default_factory=set)

    @property
    def plan(self) -> Plan:
        """The plan, with this run's queue."""
        plan = self.of.plan
        depends = {name: list(plan.depends_on[name]) for name in plan.steps}
        return Plan(plan.type, queue=self.queue, steps=list(plan.steps), depends_on=depends)

    @property
    def keys(self) -> list[str]:
        """The biz_keys."""
        return list(self.scripts)

    def workflow_id(self, key: str) -> str:
        """Return an instance's identity."""
        return workflow_id_of(key)

    def read(self, key: str) -> WorkflowInstance | None:
        """Read an instance beside all processes."""
        row = self.stage.instances.find_one({"workflow_id": workflow_id_of(key)})
        return None if row is None else WorkflowInstance.model_validate(from_stored(row))

    def look(self, writer: str, command: Command) -> None:
        """Judge what a command changed."""
        if command.writes and command.collection == "workflow_instances":
            for key in self.keys:
                self.wrong.extend(self.watches[key].see(self.read(key), writer))

    def let_time_pass(self, key: str) -> WorkflowInstance | None:
        """Let every lease, backoff and wait of one instance be over; return it."""
        row = self.stage.instances.find_one_and_update(
            {"workflow_id": workflow_id_of(key)}, _EARLIER, return_document=ReturnDocument.AFTER
        )
        now = None if row is None else WorkflowInstance.model_validate(from_stored(row))
        self.watches[key].skip(now)
        return now


class Stage:
    """Kernels that stand for processes, on one database of their own."""

    def __init__(self, mongo_url: str, *, slots: int = 1) -> None:
        #: Claims a worker runs side by side, and so instances of a schedule.
        self.slots = slots
        self.wire = Wire()
        self.scripts = Scripts()
        self.types = self.scripts.definitions()
        self._url = mongo_url
        self._name = f"interleaving_{secrets.token_hex(6)}"
        self._client: MongoClient[dict[str, Any]] = MongoClient(mongo_url, tz_aware=True)
        self._number = 0
        options: CodecOptions[Any] = CodecOptions(tz_aware=True)
        self.database = self._client.get_database(self._name, codec_options=options)
        self.instances: Collection[dict[str, Any]] = self.database["workflow_instances"]
        self.signals: Collection[dict[str, Any]] = self.database["workflow_signals"]
        self.kernels = [self._kernel() for _ in range(PROCESSES)]
        self.minder = self._kernel()
        self.minder.ensure_schema()

    @contextlib.contextmanager
    def opened(self) -> Iterator["Stage"]:
        """Hold the driver's commands back for as long as the block runs; then drop everything."""
        pauses = committing._PAUSES
        # Nobody is away here, so that waiting would only cost time.
        vars(committing)["_PAUSES"] = (0.0,)
        try:
            with self.wire.installed():
                yield self
        finally:
            vars(committing)["_PAUSES"] = pauses
            for kernel in (*self.kernels, self.minder):
                kernel.close()
            self._client.drop_database(self._name)
            self._client.close()

    def begin(self, of: str, scripts: Sequence[Script]) -> Run:
        """Return a run of fresh instances, one a script."""
        self._number += 1
        keys = {f"{self._number}:{n}": script for n, script in enumerate(scripts)}
        self.scripts.by_key = dict(keys)
        run = Run(self, f"q{self._number}", self.types[of], keys)
        run.watches = {key: Watch() for key in keys}
        return run

    def play(self, run: Run, processes: Sequence[Process], choices: Choices) -> list[str]:
        """Run a schedule; return its story."""
        address = self._client.address
        assert address is not None
        schedule = Schedule(self.wire, choices, lambda message: deliver(address, message), run.look)
        try:
            schedule.run(processes)
        except AssertionError as exc:
            run.wrong.append(str(exc))
        return schedule.story

    def hint(self, kernel: Kernel, run: Run, *, lying: bool) -> None:
        """Give a process hints for a run."""
        hints: Hints = NoHints()
        if lying:
            rumours: Any = Rumours([run.workflow_id(key) for key in run.keys])
            hints = rumours
        kernel.hints.hints = hints

    def settle(self, run: Run) -> None:
        """Bring a run to its end by looking around, without telling anybody anything."""
        self.minder.hints.hints = NoHints()
        for _ in range(_ROUNDS_MAX):
            found = [run.let_time_pass(key) for key in run.keys]
            open_ones = [one for one in found if one is not None and not one.status.is_terminal]
            known = [one.workflow_id for one in found if one is not None]
            if known and self._is_pending({"workflow_id": {"$in": known}}, run):
                self.minder.reconcile()
            elif not open_ones:
                return
            for instance in open_ones:
                if instance.status is InstanceStatus.WAITING:
                    self.minder.tick()
                    self._tell(run, instance)
            self.minder.drain([run.queue], max_claims=len(open_ones))
        run.wrong.append(f"I10 not at an end after {_ROUNDS_MAX} rounds of looking")

    def _is_pending(self, found: dict[str, Any], run: Run) -> bool:
        return bool(run.signals) and bool(self.signals.find_one(found | {"status": "pending"}))

    def _tell(self, run: Run, instance: WorkflowInstance) -> None:
        """Deliver what an instance waits for, unless somebody has."""
        for wait in instance.waits:
            told = {"workflow_id": instance.workflow_id, "wait_key": wait.wait_key}
            if wait.wait_key is None or self._is_pending(told, run):
                continue
            signal_id = f"{instance.biz_key}:end:{len(run.signals)}"
            run.signals.add(signal_id)
            self.minder.deliver_signal(
                workflow_id=instance.workflow_id,
                signal_type=SIGNAL,
                wait_key=wait.wait_key,
                signal_id=signal_id,
            )

    def _kernel(self) -> Kernel:
        config = KernelConfig(
            mongo_url=self._url,
            database=self._name,
            lease=_LEASE_SECONDS,
            slots_per_child=self.slots,
        )
        kernel = Kernel.connect(config)
        for definition in self.types.values():
            kernel.register(definition)
        # Frozen for the product; here the order of a wave's threads must be the same again.
        object.__setattr__(kernel._parts.machine, "wave_threads", InTurn())
        return kernel


def _earlier(field_path: str) -> dict[str, Any]:
    """The time at a path, moved back unless there is none or it never comes."""
    is_near = {"$lt": [{"$year": field_path}, 9000]}
    moved = {"$subtract": [field_path, _LONG_MS]}
    is_date = {"$eq": [{"$type": field_path}, "date"]}
    return {"$cond": [is_date, {"$cond": [is_near, moved, field_path]}, field_path]}


def _with(path: str, field_name: str) -> dict[str, Any]:
    """A subdocument with one of its times moved back; what is missing stays away."""
    return {"$mergeObjects": [path, {field_name: _earlier(f"{path}.{field_name}")}]}


_STEPS = {"$objectToArray": "$steps"}
_STEP = {"$mergeObjects": ["$$this", {"v": _with("$$this.v", "not_before")}]}
_FINALIZER_WAITS = {"$eq": [{"$type": "$finalizer.not_before"}, "date"]}
_EARLIER: list[dict[str, Any]] = [
    {
        "$set": {
            "claimable_time": _earlier("$claimable_time"),
            "waits": {"$map": {"input": "$waits", "in": _with("$$this", "poll_time")}},
            "steps": {"$arrayToObject": {"$map": {"input": _STEPS, "in": _STEP}}},
            "finalizer": {
                "$cond": [_FINALIZER_WAITS, _with("$finalizer", "not_before"), "$finalizer"]
            },
        }
    },
]
