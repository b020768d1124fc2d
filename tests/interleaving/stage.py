"""The processes of all schedules of one shard, on a database of their own.

Guarantees that schedules do not meet: each has its own instances and resources, and its facts are
put aside before the next one begins; many are brought to their ends together. Leaves what is done
to the case, judging to `run`.

MongoDB never dies here, so that no majority and no journal is waited for: what is written is what
every reader sees, and a schedule costs half.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bson import CodecOptions
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.server_selectors import writable_server_selector
from pymongo.write_concern import WriteConcern

import kernel.engine.committing as committing
from kernel import Kernel, KernelConfig, limits
from kernel.hints import Hints, NoHints
from kernel.runtime import wiring
from kernel.store.connection import Connection
from kernel.store.schema import CAPACITY, INSTANCES, SIGNALS
from tests.interleaving.changes import Watch
from tests.interleaving.choices import Choices
from tests.interleaving.permits import Ledger
from tests.interleaving.rumours import Rumours
from tests.interleaving.run import Run
from tests.interleaving.schedule import Look, Process, Schedule
from tests.interleaving.scripts import NEEDS, Script, Scripts
from tests.interleaving.settling import settle
from tests.interleaving.wire import Wire, deliver

#: Seconds; longer than any schedule, so that nothing ends by itself.
_LEASE_SECONDS = 600
#: Limits of the product that time would reach by itself.
_UNTIL_TIME_PASSES = ("RESERVATION_SECONDS", "PASSING_SECONDS")
#: Processes of the actors; one more looks on and brings everything to its end.
PROCESSES = 5
#: Claims that one runs side by side.
_MINDER_SLOTS = 16


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


class _Near(Connection):
    """A connection that waits for no majority."""

    def __init__(self, url: str, *, database: str) -> None:
        super().__init__(url, database=database)
        self.database = self.database.with_options(write_concern=WriteConcern(1))

    def majority(self, name: str) -> Collection[dict[str, Any]]:
        """Return a collection: of one server that never dies, all that is written stays."""
        return self.database[name]


def _shorten(client: MongoClient[dict[str, Any]]) -> None:
    """Spare a client what is for servers that come and go: there is one, and it stays.

    Choosing it anew and telling listeners of every checkout is a quarter of what a command costs.
    """
    client.admin.command("ping")
    server = client._topology.select_server(writable_server_selector, "stage")
    telemetry = server.pool._telemetry
    telemetry._log = telemetry._should_publish = False
    vars(client)["_select_server"] = lambda *_args, **_options: server


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
        self._client: MongoClient[dict[str, Any]] = MongoClient(mongo_url, tz_aware=True, w=1)
        self._number = 0
        options: CodecOptions[Any] = CodecOptions(tz_aware=True)
        database = self._client.get_database(self._name, codec_options=options)
        self.facts = {name: database[name] for name in (INSTANCES, SIGNALS, CAPACITY)}
        self.kernels = [self._kernel(slots) for _ in range(PROCESSES)]
        self.minder = self._kernel(_MINDER_SLOTS)
        for definition in self.types.values():
            self.minder.register(definition)
        self.minder.ensure_schema()
        for kernel in (*self.kernels, self.minder):
            _shorten(kernel._parts.connection.client)
            # It looks when time has passed, in a thread no schedule knows of; tick looks as well.
            kernel._parts.permits.handing_on._pacer.close()
        _shorten(self._client)

    @contextlib.contextmanager
    def opened(self) -> Iterator["Stage"]:
        """Hold the driver's commands back for as long as the block runs; then drop everything."""
        pauses = committing._PAUSES
        seconds = {name: getattr(limits, name) for name in _UNTIL_TIME_PASSES}
        # Nobody is away here, so that waiting would only cost time; and no time passes by itself.
        vars(committing)["_PAUSES"] = (0.0,)
        vars(limits).update(dict.fromkeys(seconds, _LEASE_SECONDS))
        try:
            with self.wire.installed():
                yield self
        finally:
            vars(committing)["_PAUSES"] = pauses
            vars(limits).update(seconds)
            for kernel in (*self.kernels, self.minder):
                kernel.close()
            self._client.drop_database(self._name)
            self._client.close()

    def begin(self, of: str, scripts: Sequence[Script]) -> Run:
        """Return a run of fresh instances, one a script."""
        self._number += 1
        keys = {f"{self._number}:{n}": script for n, script in enumerate(scripts)}
        self.scripts.by_key.update(keys)
        run = Run(self.facts, str(self._number), self.types[of], keys)
        if of in NEEDS:
            run.ledger = Ledger(run.name, NEEDS[of])
        run.watches = {key: Watch() for key in keys}
        for kernel in self.kernels:
            # Of all types, commands would grow with each; the order of a run's stays the same.
            registry = kernel._parts.registry
            registry._plans.clear()
            registry._definitions.clear()
            registry.register(self.types[of])
            # Of so many resources, a process would stop grouping.
            kernel._parts.permits.groups._groups.clear()
        return run

    def play(
        self, run: Run, processes: Sequence[Process], choices: Choices, *, watched: bool = True
    ) -> list[str]:
        """Run a schedule; return its story. Unwatched, it is only how the run was left."""
        address = self._client.address
        assert address is not None
        look: Look = run.look if watched else lambda *_: None
        schedule = Schedule(self.wire, choices, lambda message: deliver(address, message), look)
        try:
            schedule.run(processes)
        except AssertionError as exc:
            run.wrong.append(str(exc))
        return schedule.story

    def hint(self, kernel: Kernel, run: Run, *, lying: bool) -> None:
        """Give a process hints for a run."""
        hints: Hints = NoHints()
        if lying:
            rumours: Any = Rumours(list(run.ids))
            hints = rumours
        kernel.hints.hints = hints

    def settle(self, runs: Sequence[Run]) -> None:
        """Bring runs to their ends by looking around, without telling anybody anything."""
        # A process may still give back what it held when its schedule was over: that makes a
        # resource anew, of which nobody here knows.
        strays = [name for run in runs if run.aside for name in run.resources]
        self.facts[CAPACITY].delete_many({"_id": {"$in": strays}})
        # Resources before those that wait for them: whoever looks must not make them anew.
        for name, facts in reversed(self.facts.items()):
            if rows := [row for run in runs for row in run.aside.pop(name, ())]:
                facts.insert_many(rows)
        settle(self.minder, self.facts, runs)

    def forget(self, runs: Sequence[Run]) -> None:
        """Delete what runs left: nothing else is here."""
        for facts in self.facts.values():
            facts.delete_many({})
        for key in (key for run in runs for key in run.keys):
            del self.scripts.by_key[key]

    def _kernel(self, slots: int) -> Kernel:
        config = KernelConfig(
            mongo_url=self._url,
            database=self._name,
            lease=_LEASE_SECONDS,
            slots_per_child=slots,
        )
        connection = vars(wiring)["Connection"]
        vars(wiring)["Connection"] = _Near
        try:
            kernel = Kernel.connect(config)
        finally:
            vars(wiring)["Connection"] = connection
        # A start slot that comes due is no command of anybody's: time only passes when it is let.
        kernel._parts.permits.handing_on._pacer.close()
        # A run of many schedules lasts longer: a renewal would come into one of them.
        kernel._parts.keeper.stop()
        # Frozen for the product; here the order of a wave's threads must be the same again.
        object.__setattr__(kernel._parts.machine, "wave_threads", InTurn())
        # Those on their way are held back here: waiting for them would only cost time.
        kernel._parts.machine.motion.catch_up_seconds = 0.0
        return kernel
