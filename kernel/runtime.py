"""The only place that wires: one `Kernel` per process, from its configuration (design 9)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Final

from kernel.capacity import Capacity
from kernel.config import KernelConfig
from kernel.definition import Definition, Plan, Registry
from kernel.engine.drain import Drain
from kernel.engine.heartbeat import Heartbeat
from kernel.engine.hinting import HintWriter
from kernel.engine.invoke import Invoker
from kernel.engine.machine import Machine
from kernel.errors import NotAvailable, NotFound
from kernel.explaining import Explanation, explain
from kernel.hints import Hints, NoHints, RedisHints
from kernel.model import Priority, WorkflowInstance
from kernel.protocol import owning
from kernel.publish import Publisher, StartResult
from kernel.reconcile import Reconciler, Ticker
from kernel.reconcile.duties import Reconciled
from kernel.store import (
    Connection,
    DutyLeases,
    InstanceScan,
    InstanceStore,
    StoreClock,
    ensure_schema,
)

#: Marks this process among others of the same host and pid over time.
_STARTED: Final = time.time_ns() // 1_000_000


class Kernel:
    """Everything a host needs, thread-safe; connect one per process, after any fork."""

    def __init__(self, config: KernelConfig) -> None:
        self.config = config
        self.capacity = Capacity()
        self.registry = Registry()
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{_STARTED}"
        self.clock = StoreClock(config.clock_offset_ms)
        self._connection = Connection(config.mongo_url, database=config.database)
        self._store = InstanceStore(self._connection, self.clock)
        self._scan = InstanceScan(self._connection, self.clock)
        self.hints = HintWriter(_hints(config, self.clock), config.ring)
        self._publisher = Publisher(self._store, self.registry, self.hints)
        self._heartbeat = Heartbeat(self._store, lease_ms=config.lease_ms)
        self._machine = self._build_machine()
        self._drain = Drain(self._machine, types_off=config.types_off)
        self._reconciler = Reconciler(
            store=self._store,
            scan=self._scan,
            leases=DutyLeases(self._connection, self.clock),
            hints=self.hints,
            holder=self.owner,
        )
        self._ticker = Ticker(
            store=self._store, scan=self._scan, hints=self.hints, rebuild=self._reconciler.run
        )

    @classmethod
    def connect(cls, config: KernelConfig) -> Kernel:
        """Return a kernel; it connects when first used, so a server may still be starting.

        Raises:
            UsageError: a URL that is none.
        """
        return cls(config)

    def ensure_schema(self) -> None:
        """Create collections, validators and indexes. On repeat: nothing.

        Raises:
            NotAReplicaSet: the server cannot keep the guarantees; the message says what to do.
            StoreUnavailable: it did not answer.
        """
        ensure_schema(self._connection)

    def register_plan(self, plan: Plan) -> None:
        """Allow this process to publish a plan. On repeat: nothing.

        Raises:
            DefinitionError: the type is registered with other steps.
        """
        self.registry.register_plan(plan)

    def register(self, definition: Definition) -> None:
        """Allow this process to publish and to run a definition. On repeat: the later one counts.

        Raises:
            DefinitionError: the type is registered with other steps.
        """
        self.registry.register(definition)

    def start_or_resume(
        self,
        plan: Plan,
        *,
        biz_key: str,
        input: object = None,  # noqa: A002 - the public face says input
        fencing_token: int = 1,
        priority: Priority | int = Priority.ASYNC,
        timeout: float | None = None,
    ) -> StartResult:
        """Register a business round of `biz_key`; on repeat the same answer (design 1.4).

        `fencing_token` is the number of the round, from 1. `timeout` bounds MongoDB's part in
        seconds. Only `accepted` allows the caller to confirm its intent.

        Raises:
            UnknownWorkflow, InvalidValue: the call is wrong, nothing was written.
            StoreUnavailable: no answer; repeating is safe.
        """
        with self._connection.bounded(timeout):
            return self._publisher.start_or_resume(
                plan,
                biz_key=biz_key,
                value=input,
                fencing_token=fencing_token,
                priority=priority,
            )

    def get(self, workflow_id: str) -> WorkflowInstance:
        """Return an instance from the primary.

        Raises:
            NotFound: there is none.
            StoreUnavailable: no answer.
        """
        stored = self._store.read(workflow_id)
        if stored is None:
            raise NotFound(f"no workflow instance {workflow_id!r}")
        return stored.instance

    def find(self, *, biz_key: str) -> WorkflowInstance | None:
        """Return the instance of a biz_key, or None."""
        stored = self._store.read_by_biz_key(biz_key)
        return stored.instance if stored is not None else None

    def list_instances(
        self,
        *,
        status: str | Sequence[str] | None = None,
        type: str | None = None,  # noqa: A002 - the word of the model
        limit: int = 50,
        after: str | None = None,
    ) -> list[WorkflowInstance]:
        """Return up to `limit` instances in order of workflow_id, those after `after`."""
        statuses = [status] if isinstance(status, str) else list(status or ())
        return self._scan.page(status=statuses, workflow_type=type, limit=limit, after=after)

    def why(self, workflow_id: str) -> Explanation:
        """Explain from stored facts why an instance does (not) move.

        Raises:
            NotFound: there is none.
        """
        stored = self._store.read(workflow_id)
        if stored is None:
            raise NotFound(f"no workflow instance {workflow_id!r}")
        return explain(stored.instance, stored.now)

    def deliver_signal(
        self,
        *,
        workflow_id: str,
        signal_type: str,
        wait_key: str,
        signal_id: str,
        generation: int = 0,
    ) -> bool:
        """Wake a waiting workflow. Raises: NotAvailable in this version."""
        raise NotAvailable(
            "signals are not part of this version; waits with poll_after wake anyway"
        )

    def supersede(self, workflow_id: str, *, reason: str) -> bool:
        """End an obsolete instance as canceled; needs no claim (design 1.4).

        Returns whether this call changed it: False when it is terminal, failing or absent. What its
        worker still does outside cannot be recalled, but it commits nothing any more.

        Raises:
            StoreUnavailable: no answer; repeating is safe.
        """
        stored = self._store.read(workflow_id)
        if stored is None or stored.instance.status not in owning.SUPERSEDABLE:
            return False
        return self._store.commit(owning.supersede(stored.instance, reason))

    def run_once(self, queues: Sequence[str]) -> bool:
        """Claim and run at most one instance of these queues; tell whether one ran."""
        return self._drain.run_once(queues)

    def drain(
        self,
        queues: Sequence[str],
        *,
        max_claims: int | None = None,
        max_seconds: float | None = None,
    ) -> int:
        """Run what is due until nothing is or the budget is used up; return how many ran."""
        return self._drain.drain(queues, max_claims=max_claims, max_seconds=max_seconds)

    def tick(self) -> int:
        """Serve due timers and ended leases; beat calls it every second. On repeat: harmless."""
        return self._ticker.tick(self.registry.queues())

    def reconcile(self) -> Reconciled:
        """Find what nobody was told about; beat calls it every 30 s. On repeat: harmless."""
        return self._reconciler.run()

    def request_stop(self) -> None:
        """Take no new claims; those that run finish their step, commit and are handed back."""
        self._machine.stop.set()

    def close(self) -> None:
        """Stop renewing and close connections; claims that still run are left to their leases."""
        self._heartbeat.stop()
        self.hints.hints.close()
        self._connection.close()

    def _build_machine(self) -> Machine:
        config = self.config
        return Machine(
            store=self._store,
            registry=self.registry,
            invoker=Invoker(around=config.around_activity, hang_grace=config.hang_grace_seconds),
            heartbeat=self._heartbeat,
            hints=self.hints,
            owner=self.owner,
            lease_ms=config.lease_ms,
            hang_grace=config.hang_grace_seconds,
            max_recoveries=config.max_recoveries,
            document_bytes=self._store.document_bytes,
            default_ports=config.ports,
        )


def _hints(config: KernelConfig, clock: StoreClock) -> Hints:
    if config.redis_url is None:
        return NoHints()
    return RedisHints(
        config.redis_url,
        key_prefix=config.key_prefix,
        clock_offset_ms=lambda: clock.offset_ms,
    )
