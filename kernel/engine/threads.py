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
#: Where a thread takes its next call from; None ends it.
_Inbox = queue.SimpleQueue[_Job | None]


class ActivityThreads:
    """Runs callables in threads that outlive them and are reused."""

    def __init__(self, name: str = "baton-activity") -> None:
        self._name = name
        self._idle: list[_Inbox] = []
        self._lock = threading.Lock()
        self._closed = False

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

    def close(self) -> None:
        """End the idle threads; one that is busy ends with its call. On repeat: nothing."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _inbox(self) -> _Inbox:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        inbox: _Inbox = queue.SimpleQueue()
        threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        return inbox

    def _serve(self, inbox: _Inbox) -> None:
        while (job := inbox.get()) is not None:
            job()
            with self._lock:
                if self._closed:
                    return
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

    def close(self) -> None:
        """Stop the loop and its thread; what runs on it is left behind. On repeat: nothing."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None and self._pid == os.getpid():
                loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                threading.Thread(
                    target=_run_until_stopped, args=(self._loop,), name="baton-async", daemon=True
                ).start()
            return self._loop


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
