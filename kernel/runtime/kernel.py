"""One `Kernel` per process: everything a host needs, and nothing it could do wrong by hand.

Guarantees that what it names is wired right, and that errors are the kernel's own. Leaves to
others: everything it does; every method hands on to one part.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.capacity import Capacity
from kernel.config import KernelConfig
from kernel.definition import Definition, Plan
from kernel.model import Priority
from kernel.protocol import owning
from kernel.publish import StartResult
from kernel.reconcile.duties import Reconciled
from kernel.runtime.hosting import Hosting
from kernel.runtime.in_pages import InPages
from kernel.runtime.inspecting import Inspecting
from kernel.runtime.wiring import SlotOfChild, build_parts
from kernel.signals import read_signal
from kernel.store import ensure_schema


class Kernel(InPages, Inspecting, Hosting):
    """Everything a host needs, thread-safe; connect one per process, after any fork."""

    def __init__(self, config: KernelConfig, *, child: SlotOfChild | None = None) -> None:
        self.config = config
        self._parts = build_parts(config, child)
        self.capacity = Capacity(self._parts.permits)
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
            Unreadable: its instance exists, and holds what this version does not know.
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

    def deliver_signal(
        self,
        *,
        workflow_id: str,
        signal_type: str,
        wait_key: str,
        signal_id: str,
        generation: int = 0,
        timeout: float | None = None,
    ) -> bool:
        """Ring at a waiting workflow: something it waits for may have changed (design 4).

        Store the business fact first; a signal carries identity only. `signal_id` names this one
        notification; delivering it again is harmless. An early signal is kept until its workflow
        waits. Returns True when newly recorded, False when it was delivered before or the instance
        has ended. `timeout` bounds MongoDB's part in seconds.

        Raises:
            InvalidValue: a malformed identity, or a signal_id used for another wait.
            StoreUnavailable: no answer; repeat with the same signal_id.
        """
        signal = read_signal(
            {
                "signal_id": signal_id,
                "workflow_id": workflow_id,
                "signal_type": signal_type,
                "wait_key": wait_key,
                "generation": generation,
            }
        )
        with self._parts.connection.bounded(timeout):
            return self._parts.delivery.deliver([signal])[0]

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

    def build_hints(self) -> bool:
        """Build the hints of an empty Redis from MongoDB, before the first worker starts.

        A tick does the same, and warns of it: there it means that Redis lost them. Returns whether
        they are whole; False too while Redis does not answer. On repeat: nothing.
        """
        return self._parts.ticker.build_hints()

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
        self._parts.permits.handing_on.close()
        self.hints.hints.close()
        self._parts.connection.close()

    def _is_due(self, duty: str, unless_within: float | None) -> bool:
        # Without a bound the turn is begun all the same, so that others know of it.
        interval_ms = int(1000 * (unless_within or 0))
        return self._parts.leases.begin(duty, interval_ms=interval_ms) or unless_within is None
