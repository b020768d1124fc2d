"""What a scenario is: what happens before, under and after the knife.

Guarantees that a scenario says how often each step is entered when nobody dies, so that what a
death adds can be counted. Leaves running it to `tests.crash.lab` and `tests.crash.rescue`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from kernel import Definition, Kernel
from tests.crash.stage import Stage, connected
from tests.crash.world import World

#: (name of the instance, round, step) → how often it is entered when nobody dies.
Entries = Mapping[tuple[str, int, str], int]


class Scenario(ABC):
    """One operation that is killed at every boundary."""

    with_redis: ClassVar[bool] = True
    #: None: the scenario counts effects in its own way.
    entries: ClassVar[Entries | None]
    #: How many steps may be in flight at once, so be entered again after one death.
    width: ClassVar[int] = 1

    def definitions(self, stage: Stage) -> list[Definition]:
        """Return what its workers run."""
        return []

    def connect(self, stage: Stage) -> Kernel:
        """Return the kernel of one process."""
        return connected(stage.config(with_redis=self.with_redis), self.definitions(stage))

    def biz_keys(self, world: World) -> list[str]:
        """Return the instances it is about."""
        return [world.biz_key()]

    @abstractmethod
    def arrange(self, stage: Stage) -> None:
        """Bring about the state in which it starts; nobody dies in it."""

    @abstractmethod
    def act(self, stage: Stage) -> None:
        """Do what is killed at every boundary."""

    def recover(self, stage: Stage) -> None:
        """Do what a fresh worker, the clock and, where one is involved, the client do next."""
        stage.converge(self.biz_keys(stage.world))

    def look(self, stage: Stage) -> Iterator[str]:
        """Say what must never be, not even in between: looked at after the death and in the end."""
        yield from ()

    @abstractmethod
    def check(self, stage: Stage) -> Iterator[str]:
        """Say what is wrong in the end, beside the invariants and the ledger."""
