"""What every part of running a claim shares: the store, the registry, the door, the policy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel.definition import Definition, Registry
from kernel.engine.committing import StopRequest
from kernel.engine.hinting import HintWriter
from kernel.engine.invoke import Invoker
from kernel.engine.keeping import ClaimKeeper
from kernel.engine.motion import Motion
from kernel.engine.permits import PermitDesk
from kernel.engine.threads import ActivityThreads
from kernel.model import Wait
from kernel.protocol.settling import Policy
from kernel.store.port import Inbox, Instances


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The engine's parts, wired once by `kernel.runtime`.

    `jitter` gives numbers in [0, 1) that spread retries.
    """

    store: Instances
    inbox: Inbox
    registry: Registry
    invoker: Invoker
    keeper: ClaimKeeper
    permits: PermitDesk
    hints: HintWriter
    motion: Motion
    owner: str
    lease_ms: int
    hang_grace: float
    max_recoveries: int
    document_bytes: Callable[[dict[str, Any]], int]
    #: Looks into the inbox for an instance that has just begun to wait, for what it waits for.
    look_into_inbox: Callable[[str, Sequence[Wait]], None]
    default_ports: Any = None
    stop: StopRequest = field(default_factory=StopRequest)
    jitter: Callable[[], float] = field(default=random.random)
    wave_threads: ActivityThreads = field(default_factory=lambda: ActivityThreads("baton-wave"))
    claim_threads: ActivityThreads = field(default_factory=lambda: ActivityThreads("baton-claim"))

    def is_stopping(self) -> bool:
        """Tell whether nothing new should begin in this process."""
        return self.stop.is_set() or self.keeper.should_stop()

    def close(self) -> None:
        """End what runs in the background; calls in flight are left to themselves."""
        self.keeper.stop()
        self.invoker.close()
        self.wave_threads.close()
        self.claim_threads.close()

    def ports(self, definition: Definition) -> Any:
        """Return the ports a definition's code gets: its own, else the kernel's."""
        return definition.ports if definition.ports is not None else self.default_ports

    def policy(self, definition: Definition, *, fuses: bool = True) -> Policy:
        """Return what settling must know of a definition and of this process now."""
        return Policy(
            has_success_finalizer=definition.success_finalizer is not None,
            has_failure_finalizer=definition.failure_finalizer is not None,
            fusable=lambda _step: fuses,
            stopping=self.is_stopping(),
        )
