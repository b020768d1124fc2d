"""One `Kernel` per process: everything a host needs, and nothing it could do wrong by hand.

Guarantees that what it names is wired right, and that errors are the kernel's own. Leaves to
others: everything it does; every method hands on to one part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from pydantic import ValidationError

from kernel import limits
from kernel.capacity import Capacity
from kernel.config import KernelConfig
from kernel.definition import Definition, Plan
from kernel.errors import InvalidValue, NotFound, StoreUnavailable, UsageError
from kernel.explaining import Explanation, Progress, explain
from kernel.keeper import ChildKeeper, ClaimSlots, Keeper
from kernel.keeper.freeing import free_claim
from kernel.model import Priority, Signal, WorkflowInstance
from kernel.protocol import owning
from kernel.publish import StartResult
from kernel.reconcile.duties import Reconciled
from kernel.runtime.wiring import SlotOfChild, build_parts
from kernel.slot import WorkerSlot
from kernel.store import Served, WorkerBeat, ensure_schema


class Kernel:
    """Everything a host needs, thread-safe; connect one per process, after any fork."""

    def __init__(self, config: KernelConfig, *, child: SlotOfChild | None = None) -> None:
        self.config = config
        self.capacity = Capacity()
        self._parts = build_parts(config, child)
        self.owner = self._parts.owner
        self.registry = self._parts.registry
        self.clock = self._parts.clock
        self.hints = self._parts.hints

    @classmethod
    def connect(cls, config: KernelConfig, *, child: SlotOfChild | None = None) -> Kernel:
        """Return a kernel; it connects when first used, so a server may still be starting.

        `child` is (slots, index) in a pool child whose claims a `Keeper` in the main process keeps;
        without it this process renews its own claims.

        Raises:
            UsageError: a URL that is none.
        """
        return cls(config, child=child)

    def build_keeper(self, slots: ClaimSlots, *, queues: Callable[[], Sequence[str]]) -> Keeper:
        """Return the keeper of a worker's children, for its main process (design 1.5).

        `queues()` are those the worker serves; definitions registered here are what it can run.
        """
        return Keeper(
            slots,
            store=self._parts.store,
            beats=self._parts.beats,
            hints=self.hints,
            owner=self.owner,
            lease_ms=self.config.lease_ms,
            queues=queues,
            served=[
                Served(definition.plan.type, definition.plan.fingerprint)
                for definition in self.registry.definitions()
                if definition.plan.type not in self.config.types_off
            ],
            bounded=self._parts.connection.bounded,
        )

    def free_left_behind(self) -> int:
        """Free what the predecessor of this child died with; call it once when a child starts.

        Returns how many claims were freed. On repeat: they have moved on, nothing happens.
        """
        keeper = self._parts.keeper
        left = keeper.left_behind if isinstance(keeper, ChildKeeper) else ()
        freed = 0
        for claim in left:
            with suppress(StoreUnavailable):  # then its lease ends by itself
                freed += free_claim(
                    self._parts.store,
                    self.hints,
                    workflow_id=claim.workflow_id,
                    token=claim.token,
                    culprit=None,
                )
        return freed

    def build_slot(
        self, queues: Callable[[], Sequence[str]], *, poll_interval: float
    ) -> WorkerSlot:
        """Return the slot of a pool child: its wakeups and its polling take turns in it."""
        drain = self._parts.drain
        return WorkerSlot(
            self.drain, poll=drain.poll, ring_if_due=drain.ring_if_due, queues=queues,
            poll_interval=poll_interval,
        )  # fmt: skip

    def workers(self, *, within_seconds: float = 60) -> list[WorkerBeat]:
        """Return the workers heard of within that time."""
        return self._parts.beats.seen(within_seconds=within_seconds)

    def ensure_schema(self) -> None:
        """Create collections, validators and indexes. On repeat: nothing.

        Raises:
            NotAReplicaSet: the server cannot keep the guarantees; the message says what to do.
            StoreUnavailable: it did not answer.
        """
        ensure_schema(self._parts.connection)

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
        with self._parts.connection.bounded(timeout):
            return self._parts.publisher.start_or_resume(
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
        stored = self._parts.store.read(workflow_id)
        if stored is None:
            raise NotFound(f"no workflow instance {workflow_id!r}")
        return stored.instance

    def find(self, *, biz_key: str, timeout: float | None = None) -> WorkflowInstance | None:
        """Return the instance of a biz_key, or None; `timeout` bounds the wait in seconds.

        Raises:
            StoreUnavailable: no answer.
        """
        with self._parts.connection.bounded(timeout):
            stored = self._parts.store.read_by_biz_key(biz_key)
        return stored.instance if stored is not None else None

    def list_instances(
        self,
        *,
        status: str | Sequence[str] | None = None,
        type: str | None = None,  # noqa: A002 - the word of the model
        limit: int = 50,
        after: str | None = None,
    ) -> list[WorkflowInstance]:
        """Return up to `limit` instances, newest first; `after` is the workflow_id to go on after.

        Raises:
            UsageError: a limit outside 1 to 1,000.
            NotFound: there is no instance `after`.
            StoreUnavailable: no answer.
        """
        if not 1 <= limit <= limits.PAGE_INSTANCES:
            raise UsageError(f"limit must be 1 to {limits.PAGE_INSTANCES}; go on with `after`")
        statuses = [status] if isinstance(status, str) else list(status or ())
        return self._parts.scan.page(status=statuses, workflow_type=type, limit=limit, after=after)

    def why(self, workflow_id: str) -> Explanation:
        """Explain from stored facts why an instance does (not) move.

        Raises:
            NotFound: there is none.
        """
        stored = self._parts.store.read(workflow_id)
        if stored is None:
            raise NotFound(f"no workflow instance {workflow_id!r}")
        workers = self.workers(within_seconds=limits.WORKER_SEEN_SECONDS)
        return explain(stored.instance, stored.now, workers)

    def progress(self, *, timeout: float | None = None) -> Progress:
        """Tell whether work goes on: what has waited longest, and when somebody last took a claim.

        `timeout` bounds the wait in seconds.

        Raises:
            StoreUnavailable: no answer.
        """
        with self._parts.connection.bounded(timeout):
            workers = self.workers()
            claimed = [worker.claimed_at for worker in workers if worker.claimed_at is not None]
            return Progress(
                now=self._parts.store.now(),
                oldest_due=self._parts.scan.oldest_due(types_off=self.config.types_off),
                last_claim=max(claimed, default=None),
                workers=len(workers),
            )

    def deliver_signal(
        self,
        *,
        workflow_id: str,
        signal_type: str,
        wait_key: str,
        signal_id: str,
        generation: int = 0,
    ) -> bool:
        """Ring at a waiting workflow: something it waits for may have changed (design 4).

        Store the business fact first; a signal carries identity only. `signal_id` names this one
        notification; delivering it again is harmless. An early signal is kept until its workflow
        waits. Returns True when newly recorded, False when it was delivered before or the instance
        has ended.

        Raises:
            InvalidValue: a malformed identity, or a signal_id used for another wait.
            StoreUnavailable: no answer; repeat with the same signal_id.
        """
        try:
            # Strictly: what would have to be read as another type was not meant.
            identity = {
                "signal_id": signal_id,
                "workflow_id": workflow_id,
                "signal_type": signal_type,
                "wait_key": wait_key,
                "generation": generation,
            }
            signal = Signal.model_validate(identity, strict=True)
        except ValidationError as exc:
            first = exc.errors()[0]
            raise InvalidValue(first["msg"], what=f"signal {first['loc'][0]}") from exc
        return self._parts.delivery.deliver(signal)

    def supersede(self, workflow_id: str, *, reason: str, timeout: float | None = None) -> bool:
        """End an obsolete instance as canceled; needs no claim (design 1.4).

        Returns whether this call changed it: False when it is terminal, failing or absent. What its
        worker still does outside cannot be recalled, but it commits nothing any more. `timeout`
        bounds the wait in seconds.

        Raises:
            StoreUnavailable: no answer; repeating is safe.
        """
        with self._parts.connection.bounded(timeout):
            stored = self._parts.store.read(workflow_id)
            if stored is None or stored.instance.status not in owning.SUPERSEDABLE:
                return False
            return self._parts.store.commit(owning.supersede(stored.instance, reason))

    def run_once(self, queues: Sequence[str]) -> bool:
        """Claim and run at most one instance of these queues; tell whether one ran."""
        return self._parts.drain.run_once(queues)

    def drain(
        self,
        queues: Sequence[str],
        *,
        max_claims: int | None = None,
        max_seconds: float | None = None,
    ) -> int:
        """Run what is due until nothing is or the budget is used up; return how many ran."""
        return self._parts.drain.drain(queues, max_claims=max_claims, max_seconds=max_seconds)

    def tick(self, *, unless_within: float | None = None) -> int:
        """Serve due timers and ended leases; beat calls it every second. On repeat: harmless.

        With `unless_within`, does nothing if any process began a tick that many seconds ago.
        """
        if not self._is_due("tick", unless_within):
            return 0
        return self._parts.ticker.tick(self.registry.queues())

    def reconcile(self, *, unless_within: float | None = None) -> Reconciled:
        """Find what nobody was told about; beat calls it every 30 s. On repeat: harmless.

        With `unless_within`, does nothing if any process began one that many seconds ago.
        """
        if not self._is_due("reconcile turn", unless_within):
            return Reconciled(ran=False)
        return self._parts.reconciler.run()

    def request_stop(self) -> None:
        """Take no new claims; those that run finish their step, commit and are handed back."""
        self._parts.machine.stop.set()

    def close(self) -> None:
        """Stop renewing and close connections; claims that still run are left to their leases."""
        self._parts.machine.close()
        self.hints.hints.close()
        self._parts.connection.close()

    def _is_due(self, duty: str, unless_within: float | None) -> bool:
        # Without a bound the turn is begun all the same, so that others know of it.
        interval_ms = int(1000 * (unless_within or 0))
        return self._parts.leases.begin(duty, interval_ms=interval_ms) or unless_within is None
