"""One process of a measurement: gets ready, waits to be released, works, answers in JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.children import READY
from bench.site import QUEUE, connect
from bench.statements import Bare
from bench.workflows import definitions, listener
from kernel import Kernel, workflow_id_of

Work = Callable[[], dict[str, Any]]
#: After so many claims of a crowd a worker has made its threads, buffers and caches.
_FIRST_CLAIMS = 500
#: A worker that has found nothing for this long will find nothing more, seconds.
_IDLE_SECONDS = 120.0


def main() -> None:
    """Run the mode named on the command line."""
    work = MODES[sys.argv[1]](*sys.argv[2:])
    print(READY, flush=True)
    sys.stdin.readline()
    print(json.dumps(work()), flush=True)


def drain(slots: str = "1") -> Work:
    """Be a worker: run whatever is due on the queue, so many claims side by side."""
    kernel = connect(os.environ, slots=int(slots))
    for definition in definitions():
        kernel.register(definition)
    kernel.find(biz_key="opens the connection")

    def work() -> dict[str, Any]:
        return {"ran": kernel.drain([QUEUE])}

    return work


def wake(slots: str) -> Work:
    """Be a worker until one event has woken everybody and all of them have ended."""
    kernel = connect(os.environ, slots=int(slots))

    def tell(numbers: Sequence[int]) -> None:
        kernel.deliver_signals(
            [
                {
                    "workflow_id": workflow_id_of(listener(number)),
                    "signal_type": "event",
                    "wait_key": "event",
                    "signal_id": f"event:{number}",
                }
                for number in numbers
            ]
        )

    for definition in definitions(tell):
        kernel.register(definition)
    kernel.find(biz_key="opens the connection")

    def work() -> dict[str, Any]:
        before = _resident_bytes()
        ran, first, peak = 0, 0, 0
        idle_until = time.monotonic() + _IDLE_SECONDS
        while time.monotonic() < idle_until:
            now = kernel.drain([QUEUE], max_claims=500)
            ran += now
            peak = max(peak, _resident_bytes())
            first = first or (peak if ran >= _FIRST_CLAIMS else 0)
            if now == 0 and _is_over(kernel):
                after = _resident_bytes()
                return {
                    "ran": ran,
                    "before": before,
                    "first": first or peak,
                    "peak": peak,
                    "after": after,
                }
            if now == 0:
                time.sleep(0.01)
            else:
                idle_until = time.monotonic() + _IDLE_SECONDS
        raise RuntimeError(f"nothing to run for {_IDLE_SECONDS:.0f} s, and not all have ended")

    return work


def _is_over(kernel: Kernel) -> bool:
    fanout = kernel.find(biz_key="event")
    is_told = fanout is not None and fanout.status.is_terminal
    return is_told and kernel.progress().oldest_due is None


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def write(path: str, workflows: str, group: str) -> Work:
    """Send what a worker sends, as durably, and do nothing else."""
    bare = Bare(Path(path), int(workflows))

    def work() -> dict[str, Any]:
        return {"ran": bare.run(int(group))}

    return work


MODES: dict[str, Callable[..., Work]] = {"drain": drain, "wake": wake, "write": write}

if __name__ == "__main__":
    main()
