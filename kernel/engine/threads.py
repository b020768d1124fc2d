"""Where activity code runs: reusable daemon threads, and one event loop for all async activities.

Threads are daemons, so that an activity that never returns cannot keep its process from ending.
An idle thread is taken again; a new one starts only when none is idle.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_Job = Callable[[], None]


class ActivityThreads:
    """Runs callables in threads that outlive them and are reused."""

    def __init__(self, name: str = "baton-activity") -> None:
        self._name = name
        self._idle: list[queue.SimpleQueue[_Job]] = []
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Start `call` at once in a thread of its own; whatever it raises is in the future."""
        future: Future[T] = Future()

        def job() -> None:
            try:
                result = call()
            except BaseException as exc:  # noqa: BLE001 - activity code may raise anything
                future.set_exception(exc)
            else:
                future.set_result(result)

        self._inbox().put(job)
        return future

    def _inbox(self) -> queue.SimpleQueue[_Job]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        return inbox

    def _serve(self, inbox: queue.SimpleQueue[_Job]) -> None:
        while True:
            inbox.get()()
            with self._lock:
                self._idle.append(inbox)


class AsyncLoop:
    """One event loop in a thread of its own, started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; cancelling the future cancels its task."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                threading.Thread(
                    target=self._loop.run_forever, name="baton-async", daemon=True
                ).start()
            return self._loop
