"""Group commit: what gathers while one group is on its way is sent as the next (design 1.8).

There is no thread and no waiting for a group to fill: a caller that finds nobody sending sends
itself, so that a lone one is as fast as without a group. Those that come meanwhile queue up; the
sender, done with its own, wakes the first of them, and that one takes along all that have gathered.

Guarantees that every caller gets the answer to its own item, or the error its group met, exactly
once, and that a sender that is ended half-way leaves nobody waiting. Leaves to others: what an
answer means when it is an error (the caller asks again; its guard makes that safe).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from kernel.errors import StoreUnavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class _Entry(Generic[Item, Answer]):
    """One caller's item, and where it waits for the answer or for its turn to send."""

    __slots__ = ("answer", "error", "item", "sends", "woken")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.sends = False
        self.woken = threading.Event()

    def told(self) -> Answer:
        if self.error is not None:
            raise self.error
        return self.answer  # type: ignore[return-value]  # set by the sender of its group


class Others(Protocol):
    """Who else may come with an item soon; see `kernel.engine.motion`."""

    def add(self, change: int, /) -> None:
        """Count so many more, or fewer, that are on their way."""

    def await_rest(self) -> None:
        """Wait a moment for those on their way."""


class Grouping(Generic[Item, Answer]):
    """Turns single calls of many threads into calls of `send` with groups of at most `most`.

    `send(items)` returns one answer an item, in order; an answer that is an Exception is raised for
    its own caller only. What `send` raises is raised for every caller of that group.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Sequence[Answer | Exception]],
        *,
        most: int,
        others: Others | None = None,
    ) -> None:
        assert most >= 1, "a group has at least one item"
        self._send = send
        self._most = most
        self._others = others
        self._lock = threading.Lock()
        self._gathered: deque[_Entry[Item, Answer]] = deque()
        self._sending = False

    def __call__(self, item: Item) -> Answer:
        """Send `item` with whatever has gathered; return its answer, or raise its error."""
        mine: _Entry[Item, Answer] = _Entry(item)
        with self._lock:
            waits = self._sending
            if waits:
                self._gathered.append(mine)
            self._sending = True
        if self._others is not None:
            self._others.add(-1)
        if waits:
            self._await_turn(mine)
        if not waits or mine.sends:
            self._send_group(mine)
        return mine.told()

    def _await_turn(self, mine: _Entry[Item, Answer]) -> None:
        try:
            mine.woken.wait()
        except BaseException:  # ended from outside: nobody may wait for this caller
            with self._lock:
                is_away = mine not in self._gathered and not mine.sends
                if mine in self._gathered:
                    self._gathered.remove(mine)
            if mine.sends:
                self._hand_on()
            if self._others is not None and not is_away:
                self._others.add(1)  # one that is away is counted by its sender
            raise

    def _send_group(self, mine: _Entry[Item, Answer]) -> None:
        group = [mine]
        try:
            if self._others is not None:
                self._others.await_rest()
            with self._lock:
                others = min(self._most - 1, len(self._gathered))
                group += [self._gathered.popleft() for _ in range(others)]
            answers = self._send([entry.item for entry in group])
            for entry, answer in zip(group, answers, strict=True):
                if isinstance(answer, Exception):
                    entry.error = answer
                else:
                    entry.answer = answer
        except Exception as exc:  # noqa: BLE001 - each caller is told what its group met
            for entry in group:
                entry.error = exc
        except BaseException:
            for entry in group:
                entry.error = StoreUnavailable("the sender of this group was ended half-way")
            raise
        finally:
            if self._others is not None:
                self._others.add(len(group))  # before the next sender looks who is coming
            self._hand_on()
            for entry in group[1:]:
                entry.woken.set()

    def _hand_on(self) -> None:
        with self._lock:
            if not self._gathered:
                self._sending = False
                return
            following = self._gathered.popleft()
            following.sends = True
        following.woken.set()
