"""Where the time of a worker goes: chosen methods are timed, each without those it calls.

Guarantees that the layers of one thread add up: a layer's own time ends where the next one begins.
Timing costs about a microsecond a call, which counts in the layer around it. Leaves to others: what
is run meanwhile (`bench.profile`).
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

#: A class and the name of one of its methods.
Method = tuple[type, str]


@dataclass(slots=True)
class Layer:
    """Own time of one layer in all threads: calls, seconds of processor, seconds that passed."""

    calls: int = 0
    cpu: float = 0.0
    wall: float = 0.0


@dataclass(slots=True)
class _Frame:
    cpu: float
    wall: float
    inner_cpu: float = 0.0
    inner_wall: float = 0.0


@dataclass
class Layers:
    """The layers by name; a method belongs to one."""

    methods: Mapping[str, Sequence[Method]]
    measured: dict[str, Layer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing measured."""
        self._stacks = threading.local()
        self._lock = threading.Lock()
        self.measured = {name: Layer() for name in self.methods}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Time every method for as long as the block runs."""
        originals = []
        for name, methods in self.methods.items():
            for owner, attribute in methods:
                original = getattr(owner, attribute)
                originals.append((owner, attribute, original))
                setattr(owner, attribute, self._timed(name, original))
        try:
            yield
        finally:
            for owner, attribute, original in originals:
                setattr(owner, attribute, original)

    def _timed(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def timed(*args: Any, **options: Any) -> Any:
            stack: list[_Frame] = self._stacks.__dict__.setdefault("frames", [])
            frame = _Frame(time.thread_time(), time.perf_counter())
            stack.append(frame)
            try:
                return original(*args, **options)
            finally:
                stack.pop()
                self._add(name, frame, stack[-1] if stack else None)

        return timed

    def _add(self, name: str, frame: _Frame, outer: _Frame | None) -> None:
        cpu, wall = time.thread_time() - frame.cpu, time.perf_counter() - frame.wall
        if outer is not None:
            outer.inner_cpu += cpu
            outer.inner_wall += wall
        with self._lock:
            layer = self.measured[name]
            layer.calls += 1
            layer.cpu += cpu - frame.inner_cpu
            layer.wall += wall - frame.inner_wall
