"""One process's side of a run: its kernel, its clock, and what bringing work to its end takes.

Guarantees that nothing is connected before it is used, so that a scenario may fork first. Leaves
what is done to the scenario.
"""

import os
import traceback
from collections.abc import Callable, Iterable
from functools import cached_property

from django.conf import settings

from kernel import Definition, Kernel, KernelConfig, Plan, StartResult, WorkflowInstance
from kernel.testing import TimeShift
from tests.crash.ledger import Ledger
from tests.crash.world import LEASE_SECONDS, World
from tests.kit import groups

#: The queue of every plan made for these tests.
QUEUE = "crash"
#: Rounds of looking after which an instance that has not ended never will.
_ROUNDS_MAX = 12
#: Exit status of a forked child whose call raised.
_FAILED = 70


class Stage:
    """What a scenario works with."""

    def __init__(self, world: World, connect: Callable[["Stage"], Kernel]) -> None:
        self.world = world
        self._connect = connect
        self.offset_ms = world.offset_ms

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of this process, connected on first use."""
        return self._connect(self)

    @property
    def ledger(self) -> Ledger:
        """What was really entered."""
        return self.world.ledger

    def config(self, *, with_redis: bool = True) -> KernelConfig:
        """Return the configuration of a kernel of this run."""
        return KernelConfig(
            mongo_url=self.world.mongo_url,
            redis_url=self.world.redis_url if with_redis else None,
            database=self.world.database,
            key_prefix=self.world.key_prefix,
            lease=LEASE_SECONDS,
            clock_offset_ms=self.offset_ms,
            **groups.of_kernel(),
        )

    def start(self, plan: Plan, name: str = "one", *, number: int = 1) -> StartResult:
        """Register round `number` of an instance of this run."""
        return self.kernel.start_or_resume(
            plan, biz_key=self.world.biz_key(name), input={"name": name}, fencing_token=number
        )

    def find(self, biz_key: str) -> WorkflowInstance:
        """Return an instance that must exist."""
        found = self.kernel.find(biz_key=biz_key)
        assert found is not None, f"no instance of {biz_key}"
        return found

    def drain(self) -> int:
        """Run what is due now."""
        return self.kernel.drain([QUEUE])

    def advance(self, seconds: float) -> None:
        """Let time pass, for the kernel and for the dispatch protocol."""
        TimeShift(self.kernel).advance(seconds=seconds)
        self.offset_ms = self.kernel.clock.offset_ms
        settings.BATON_CLOCK_OFFSET_MS = self.offset_ms

    def converge(
        self,
        biz_keys: Iterable[str],
        *,
        queue: str = QUEUE,
        also: Callable[[], object] = lambda: None,
    ) -> None:
        """Look, without being told anything, until these instances have ended and hints are gone.

        Every round lets leases and backoffs run out first; `also` is a further duty of a round.
        """
        keys = list(biz_keys)
        for _ in range(_ROUNDS_MAX):
            self._look_around(queue, also)
            found = [self.kernel.find(biz_key=key) for key in keys]
            if all(instance is None or instance.status.is_terminal for instance in found):
                break
        self._look_around(queue, also)

    def _look_around(self, queue: str, also: Callable[[], object]) -> None:
        self.advance(LEASE_SECONDS + 100)
        also()
        self.kernel.tick()
        self.kernel.reconcile()
        self.kernel.drain([queue])


def in_another_process(call: Callable[[], int]) -> int:
    """Fork, let the child return `call()` as its exit status, and wait for it; minus its signal.

    Nothing may be connected in this process yet.
    """
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            code = call()
        except BaseException:  # noqa: BLE001 - a forked child must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def connected(config: KernelConfig, definitions: Iterable[Definition]) -> Kernel:
    """Return a kernel that serves these definitions."""
    kernel = Kernel.connect(config)
    for definition in definitions:
        kernel.register(definition)
    return kernel
