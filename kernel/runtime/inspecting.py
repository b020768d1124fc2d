"""What a kernel can tell: instances as stored, why they do not move, who could run them.

Guarantees that looking changes nothing. Leaves to others: the projection the console reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager

from kernel import limits
from kernel.config import KernelConfig
from kernel.errors import NotFound, UsageError
from kernel.explaining import Explanation, Place, Progress, explain
from kernel.model import WorkflowInstance
from kernel.protocol.starting import workflow_id_of
from kernel.runtime.wiring import Parts
from kernel.store import FactReader, WorkerBeat
from kernel.store.reading import RoundSeen
from kernel.store.reading_resources import ResourceReader
from kernel.verifying import Finding, Looked, Verifier


class Inspecting:
    """The reading half of a kernel."""

    config: KernelConfig
    _parts: Parts

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """Bound what all calls of a block together wait for MongoDB, e.g. inside a request."""
        return self._parts.connection.bounded(seconds)

    def workers(self, *, within_seconds: float = 60) -> list[WorkerBeat]:
        """Return the workers heard of within that time."""
        return self._parts.beats.seen(within_seconds=within_seconds)

    def get(self, workflow_id: str) -> WorkflowInstance:
        """Return an instance from the primary.

        Raises:
            NotFound: there is none.
            Unreadable: this version does not know what stands in it.
            StoreUnavailable: no answer.
        """
        stored = self._parts.store.read(workflow_id)
        if stored is None:
            raise NotFound(f"no workflow instance {workflow_id!r}")
        return stored.instance

    def find(self, *, biz_key: str, timeout: float | None = None) -> WorkflowInstance | None:
        """Return the instance of a biz_key, or None; `timeout` bounds the wait in seconds.

        Raises:
            Unreadable: this version does not know what stands in it.
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

        Those this version cannot read are passed over and logged; `verify` names them.

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
            Unreadable: this version does not know what stands in it.
        """
        stored = self._parts.store.read(workflow_id)
        if stored is None:
            raise NotFound(f"no workflow instance {workflow_id!r}")
        workers = self.workers(within_seconds=limits.WORKER_SEEN_SECONDS)
        return explain(stored.instance, stored.now, workers, self._place(stored.instance))

    def _place(self, instance: WorkflowInstance) -> Place | None:
        """Return where an instance stands in the first line it waits in, if it does."""
        blocked = instance.blocked_on
        if blocked is None or not blocked.reason.is_traffic or blocked.since is None:
            return None
        if not blocked.resources:
            return None
        permits, name = self._parts.permits, blocked.resources[0]
        position = permits.waiters.position(
            name,
            workflow_id=instance.workflow_id,
            priority=int(instance.priority),
            since=blocked.since,
            limit=limits.RESOURCES_LISTED,
        )
        states, _ = permits.store.read_each([name])
        # A resource that cannot be read tells nothing; that it is waited for stands here.
        return Place(resource=states[name], position=position) if name in states else None

    def verify(
        self,
        *,
        limit: int | None = None,
        sample: int | None = None,
        on_page: Callable[[Looked], None] = lambda _: None,
    ) -> Iterator[Finding]:
        """Yield what contradicts the invariants in the stored facts; writes nothing.

        `limit` bounds instances, pending signals and resources each, `sample` draws so many
        instances at random; `on_page` hears how much has been looked at. On repeat: looks again.

        Raises:
            UsageError: a bound below 1.
            StoreUnavailable: no answer; what was yielded before holds.
        """
        if any(bound is not None and bound < 1 for bound in (limit, sample)):
            raise UsageError("limit and sample are 1 or more")
        connection, clock = self._parts.connection, self._parts.clock
        resources = ResourceReader(connection, clock)
        verifier = Verifier(FactReader(connection), self._parts.scan, resources)
        return verifier.verify(limit=limit, sample=sample, on_page=on_page)

    def rounds_of(self, biz_keys: Collection[str]) -> dict[str, RoundSeen]:
        """Return (status, round) of those instances that exist, by biz_key; one read for all.

        Of one that this version cannot read too: None stands for what it does not know.

        Raises:
            StoreUnavailable: no answer.
        """
        keys = {workflow_id_of(key): key for key in biz_keys}
        found = FactReader(self._parts.connection).rounds(keys)
        return {keys[workflow_id]: seen for workflow_id, seen in found.items()}

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
