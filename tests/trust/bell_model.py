"""The bell as a small machine: every step that drain, publishers and Redis take, one at a time.

It follows the order of `kernel.engine.drain` and `kernel.engine.hinting`:

```
publisher  push ─▶ set bell ─(it was silent)─▶ send
child      take message ─▶ clear bell ─▶ pop ─┬─ a candidate ─▶ ring if due ─▶ run ─▶ pop …
                                              └─ none ─▶ ring if due ─▶ idle
ring       look for a due one ─▶ set bell ─(it was silent)─▶ send
```

Candidates are alike, so a state counts them: due in the lanes, and `lost` (due in MongoDB only).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

#: More messages than this in flight add nothing to what can happen.
MESSAGES_MAX = 3


class Publisher(IntEnum):
    """What a publisher does next."""

    PUSH = 0
    SET_BELL = 1
    SEND = 2
    DONE = 3


class Child(IntEnum):
    """What a child does next."""

    IDLE = 0
    CLEAR = 1
    POP = 2
    LOOK = 3
    SET_BELL = 4
    SEND = 5
    RUN = 6
    LAST_LOOK = 7
    LAST_SET_BELL = 8
    LAST_SEND = 9


@dataclass(frozen=True, slots=True)
class State:
    """Everything that decides what can happen next."""

    publishers: tuple[Publisher, ...]
    children: tuple[Child, ...]
    due: int = 0
    lost: int = 0
    bell: bool = False
    messages: int = 0

    def sent(self) -> "State":
        return replace(self, messages=min(self.messages + 1, MESSAGES_MAX))


def beginning(*, candidates: int, children: int) -> State:
    """Nobody has done anything yet."""
    return State((Publisher.PUSH,) * candidates, (Child.IDLE,) * children)


def steps(state: State) -> Iterator[State]:
    """Yield what one step of anybody makes of a state, without any fault."""
    for index, publisher in enumerate(state.publishers):
        if publisher is not Publisher.DONE:
            yield _publish(state, index, publisher)
    for index, child in enumerate(state.children):
        if child is not Child.IDLE or state.messages:
            yield _work(state, index, child)
    if state.bell:
        yield replace(state, bell=False)  # it ends by itself after two seconds


def faults(state: State) -> Iterator[State]:
    """Yield what a loss, a repetition, a flush or a death makes of a state."""
    if state.messages:
        yield replace(state, messages=state.messages - 1)
        yield state.sent()
    if state.due or state.bell:
        yield replace(state, due=0, lost=state.lost + state.due, bell=False)
    for index, publisher in enumerate(state.publishers):
        if publisher in (Publisher.SET_BELL, Publisher.SEND):
            yield _with_publisher(state, index, Publisher.DONE)
    for index, child in enumerate(state.children):
        if child is not Child.IDLE:
            held = child in (Child.LOOK, Child.SET_BELL, Child.SEND, Child.RUN)
            yield replace(_with_child(state, index, Child.IDLE), lost=state.lost + held)


def repaired(state: State) -> State:
    """Let tick and reconcile do their work: lost ones stand in a lane, what is due is rung for."""
    state = replace(state, due=state.due + state.lost, lost=0)
    return state.sent() if state.due and not state.messages else state


def is_forgotten(state: State) -> bool:
    """Tell whether something is due, a child is idle, and nobody will tell it so.

    A child inside a step may stay there for an hour, so it counts as nobody.
    """
    is_quiet = all(publisher is Publisher.DONE for publisher in state.publishers) and all(
        child in (Child.IDLE, Child.RUN) for child in state.children
    )
    return is_quiet and state.due > 0 and state.messages == 0 and Child.IDLE in state.children


def is_finished(state: State) -> bool:
    """Tell whether every candidate has been run."""
    return not (state.due or state.lost) and all(
        (
            *(p is Publisher.DONE for p in state.publishers),
            *(c is Child.IDLE for c in state.children),
        )
    )


def _publish(state: State, index: int, publisher: Publisher) -> State:
    match publisher:
        case Publisher.PUSH:
            return replace(_with_publisher(state, index, Publisher.SET_BELL), due=state.due + 1)
        case Publisher.SET_BELL:
            after = Publisher.DONE if state.bell else Publisher.SEND
            return replace(_with_publisher(state, index, after), bell=True)
        case _:
            return _with_publisher(state, index, Publisher.DONE).sent()


def _work(state: State, index: int, child: Child) -> State:
    if child in _RINGS:
        return _ring(state, index, child)
    match child:
        case Child.IDLE:
            taken = replace(state, messages=state.messages - 1)
            return _with_child(taken, index, Child.CLEAR)
        case Child.CLEAR:
            return replace(_with_child(state, index, Child.POP), bell=False)
        case Child.POP if state.due:
            return replace(_with_child(state, index, Child.LOOK), due=state.due - 1)
        case Child.POP:
            return _with_child(state, index, Child.LAST_LOOK)
        case _:
            return _with_child(state, index, Child.POP)


#: The steps of a ring, and where a child goes on from each: (there is nobody to wake, to the next).
_RINGS = {
    Child.LOOK: (Child.RUN, Child.SET_BELL),
    Child.SET_BELL: (Child.RUN, Child.SEND),
    Child.SEND: (Child.RUN, Child.RUN),
    Child.LAST_LOOK: (Child.IDLE, Child.LAST_SET_BELL),
    Child.LAST_SET_BELL: (Child.IDLE, Child.LAST_SEND),
    Child.LAST_SEND: (Child.IDLE, Child.IDLE),
}


def _ring(state: State, index: int, child: Child) -> State:
    quiet, onward = _RINGS[child]
    if child in (Child.LOOK, Child.LAST_LOOK):
        return _with_child(state, index, onward if state.due else quiet)
    if child in (Child.SET_BELL, Child.LAST_SET_BELL):
        return replace(_with_child(state, index, quiet if state.bell else onward), bell=True)
    return _with_child(state, index, onward).sent()


def _with_publisher(state: State, index: int, publisher: Publisher) -> State:
    changed = [*state.publishers]
    changed[index] = publisher
    return replace(state, publishers=tuple(sorted(changed)))


def _with_child(state: State, index: int, child: Child) -> State:
    changed = [*state.children]
    changed[index] = child
    return replace(state, children=tuple(sorted(changed)))
