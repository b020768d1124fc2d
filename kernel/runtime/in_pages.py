"""What a kernel does for many at once, at the cost of a few commands a page.

Guarantees the same answers and errors, one by one, as the calls for a single signal or instance;
what is malformed is refused before anything is written. Leaves to others: where pages come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel.definition import Plan
from kernel.errors import InvalidValue
from kernel.model import Signal
from kernel.publish import StartItem, StartResult
from kernel.runtime.wiring import Parts
from kernel.signals import read_signal


class InPages:
    """The half of a kernel for fan-outs, backfills and recoveries."""

    _parts: Parts

    def start_many(
        self, plan: Plan, items: Sequence[StartItem], *, timeout: float | None = None
    ) -> list[StartResult]:
        """Register many rounds of a plan; answers as `start_or_resume` would, in order.

        Two items of one biz_key are two calls, the first of which comes first. Registering a page
        again is harmless, also when it was registered in part. `timeout` bounds MongoDB's part in
        seconds. Only an item that is `accepted` allows its caller to confirm its intent.

        Raises:
            UnknownWorkflow: the plan is not registered here.
            InvalidValue: an item cannot be kept: nothing was written, and the message names it.
            Unreadable: an item's instance exists, and holds what this version does not know: all
                others have been registered.
            StoreUnavailable: no answer; repeating is safe.
        """
        with self._parts.connection.bounded(timeout):
            return self._parts.publisher.start_many(plan, items)

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
