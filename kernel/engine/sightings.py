"""What this process last saw of each resource, and how long it goes by that (design 2.5).

Every answer is looked at in passing; nothing is asked for here. What is seen is only a reason to
ask MongoDB less: nobody is granted anything by it. Should it be wrong, somebody waits for as long
as it is believed, or a permit is given back a moment later.

Leaves to others: what follows from it (`kernel.engine.handing_on`). Thread-safe: each sighting is
one value, replaced as a whole.
"""

from __future__ import annotations

import math
import time
from typing import Final

from kernel.protocol.resources import ResourceState

#: How long a line and a full resource are believed, seconds.
_BELIEVED_SECONDS: Final = 0.5
#: Behind so many nobody is next.
_LONG_LINE: Final = 32


class Sightings:
    """The resources one process has to do with, as it saw them last."""

    def __init__(self) -> None:
        #: How many fitted beside the holders, where there was no line.
        self._room: dict[str, float] = {}
        #: Those that had a line, and when that was.
        self._lined: dict[str, tuple[float, ResourceState]] = {}

    def note(self, state: ResourceState) -> None:
        """Remember what an answer says of a resource."""
        if state.line:
            self._room.pop(state.name, None)
            self._lined[state.name] = (time.monotonic(), state)
            return
        self._lined.pop(state.name, None)
        most = state.max_concurrency
        self._room[state.name] = math.inf if most is None else most - 2 * len(state.holders)

    def has_line(self, resource: str) -> bool:
        """Tell whether somebody waited, however long ago that was seen."""
        return resource in self._lined

    def has_room(self, resource: str) -> bool:
        """Tell whether it was less than half full and nobody waited."""
        return self._room.get(resource, 0) > 0

    def full(self, resource: str) -> ResourceState | None:
        """Return a resource that had a line and no place a moment ago."""
        state = self._believed(resource)
        return state if state is not None and not state.places() else None

    def has_long_line(self, resource: str, *, more: int = 0) -> bool:
        """Tell whether so many waited a moment ago that whoever joins them is not next.

        `more` have joined since by what is known here.
        """
        state = self._believed(resource)
        return state is not None and state.queued + more >= _LONG_LINE

    def _believed(self, resource: str) -> ResourceState | None:
        at, state = self._lined.get(resource, (-math.inf, None))
        return state if time.monotonic() - at <= _BELIEVED_SECONDS else None
