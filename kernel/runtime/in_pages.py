"""What a kernel does for many at once, at the cost of a few commands a page.

Guarantees the same answers and errors, one by one, as the calls for a single signal or instance;
what is malformed is refused before anything is written. Leaves to others: where pages come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel.errors import InvalidValue
from kernel.model import Signal
from kernel.runtime.wiring import Parts
from kernel.signals import read_signal


class InPages:
    """The half of a kernel for fan-outs, backfills and recoveries."""

    _parts: Parts

    def deliver_signals(self, signals: Sequence[Signal | Mapping[str, object]]) -> list[bool]:
        """Ring at many waiting workflows; answers as `deliver_signal` would, in order.

        Each is a `Signal`, or a mapping of the arguments of `deliver_signal`. Delivering a page
        again is harmless, also when it was delivered in part.

        Raises:
            InvalidValue: a malformed identity, or one signal_id for two waits: nothing was written,
                and the message names the index. A signal_id recorded for another wait earlier: all
                others have been delivered.
            StoreUnavailable: no answer; repeat with the same signal_ids.
        """
        read: list[Signal] = []
        for number, signal in enumerate(signals):
            try:
                read.append(read_signal(signal))
            except InvalidValue as exc:
                raise exc.within(f"signals[{number}]") from exc
        return self._parts.delivery.deliver(read)
