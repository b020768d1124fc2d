"""Turn this process's own clock, as far as Python code can read it.

Guarantees that `time.time`, `time.time_ns` and every `datetime.now` of the kernel's modules are off
by the same amount. Leaves monotonic clocks alone: those are never wrong on a real machine.
"""

import sys
import time
from datetime import UTC, datetime, timedelta, tzinfo


class _LikeDatetime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


def skew_clock(seconds: float) -> None:
    """Put this process's clock ahead by `seconds`; call it once the kernel is imported."""
    real_time, real_ns, ahead = time.time, time.time_ns, timedelta(seconds=seconds)
    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 1e9)

    class Skewed(datetime, metaclass=_LikeDatetime):
        """The kernel's datetime, with another idea of now."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + ahead

        @classmethod
        def utcnow(cls) -> datetime:  # type: ignore[override]
            return datetime.now(UTC).replace(tzinfo=None) + ahead

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "kernel" and getattr(module, "datetime", None) is datetime:
            module.datetime = Skewed  # type: ignore[attr-defined]
