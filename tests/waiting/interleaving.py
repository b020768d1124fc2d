"""Steps several real actors command by command, in an order drawn from a seed.

Guarantees that between two commands to MongoDB only one actor runs, so that a seed gives the same
order again. Leaves what the actors do, and what must hold in the end, to the tests.
"""

import os
import random
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pymongo import monitoring

#: How long an actor may take between two commands before the test counts as stuck.
_STUCK_SECONDS = 30.0

Act = Callable[[], Any]


class _Actor:
    """One thread that waits for its turn before each command."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.is_waiting = False
        self.is_done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Turns(monitoring.CommandListener):
    """Holds every command of an actor back until it has the turn; others pass."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._actors: dict[int, _Actor] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        actor = self._actors.get(threading.get_ident())
        if actor is not None:
            self._await_turn(actor)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Only beginnings are held back."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Only beginnings are held back."""

    def run(self, acts: Sequence[Act], rng: random.Random) -> list[Any]:
        """Run the actors in an order drawn from `rng`; return their results.

        Raises what an actor raised.
        """
        actors = [_Actor(act) for act in acts]
        threads = [
            threading.Thread(target=self._live, args=(actor,), daemon=True) for actor in actors
        ]
        for thread in threads:
            thread.start()
        with self._changed:
            while True:
                self._until(lambda: all(a.is_waiting or a.is_done for a in actors))
                open_ones = [actor for actor in actors if not actor.is_done]
                if not open_ones:
                    break
                chosen = rng.choice(open_ones)
                chosen.is_waiting = False
                self._changed.notify_all()
        for thread in threads:
            thread.join(_STUCK_SECONDS)
        for actor in actors:
            if actor.error is not None:
                raise actor.error
        return [actor.result for actor in actors]

    def _live(self, actor: _Actor) -> None:
        self._actors[threading.get_ident()] = actor
        try:
            self._await_turn(actor)
            actor.result = actor.act()
        except BaseException as exc:  # noqa: BLE001 - handed to the test
            actor.error = exc
        finally:
            del self._actors[threading.get_ident()]
            with self._changed:
                actor.is_done = True
                self._changed.notify_all()

    def _await_turn(self, actor: _Actor) -> None:
        with self._changed:
            actor.is_waiting = True
            self._changed.notify_all()
            self._until(lambda: not actor.is_waiting)

    def _until(self, condition: Callable[[], bool]) -> None:
        assert self._changed.wait_for(condition, _STUCK_SECONDS), "an actor is stuck"


#: Listens to every client made after this line; the driver takes no listener back.
TURNS = Turns()
monitoring.register(TURNS)


def interleavings(default: int = 40) -> Iterator[random.Random]:
    """Yield one source of choices for each interleaving; the seed of the last one is printed.

    `BATON_INTERLEAVINGS` says how many (else `default`), `BATON_SEED` which seed is the first.
    """
    first = int(os.environ.get("BATON_SEED") or secrets.randbits(31))
    count = int(os.environ.get("BATON_INTERLEAVINGS") or default)
    sys.stdout.write(f"{count} interleavings from BATON_SEED={first}\n")
    for seed in range(first, first + count):
        sys.stdout.write(f"BATON_SEED={seed}\n")
        yield random.Random(seed)
