"""The speech service's worker thread: takes tasks one by one and recognises them.

Guarantees: a task is taken again after a stop or a death in the middle; one recording that cannot
be recognised ends its own task only. Leaves to others: tasks, HTTP.
"""

import logging
import threading
import time

import httpx

from jobs.speech.faults import Faults
from jobs.speech.tasks import Task, TaskStore

log = logging.getLogger(__name__)

_LOOK_EVERY = 1.0
_SLOW_LOOK = 0.05
#: Seconds one callback may take, and how many attempts it gets; the client polls anyway.
_CALLBACK_SECONDS = 5.0
_CALLBACK_ATTEMPTS = 3


class Work:
    """One thread over one store."""

    def __init__(self, tasks: TaskStore, faults: Faults | None) -> None:
        self._tasks = tasks
        self._faults = faults
        self._stopped = threading.Event()
        self._something = threading.Event()
        self._thread = threading.Thread(target=self._run, name="speech-work", daemon=True)

    def start(self) -> None:
        """Begin with what is queued."""
        self._thread.start()

    def look(self) -> None:
        """Say that a task was added."""
        self._something.set()

    def stop(self) -> None:
        """End between two chunks; the task in hand is begun again by the next process."""
        self._stopped.set()
        self._something.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._something.clear()
            taken = self._tasks.take()
            if taken is None:
                self._tasks.forget_old()
                self._something.wait(_LOOK_EVERY)
            else:
                self._recognise(*taken)

    def _recognise(self, task_id: str, samples: bytes) -> None:
        from jobs.speech.recogniser import Stopped, recognise

        begun = time.monotonic()
        try:
            text = recognise(samples, stopped=self._stopped.is_set)
        except Stopped:
            return
        except Exception as error:
            log.exception("task %s could not be recognised", task_id)
            ended = self._tasks.finish(task_id, reason=f"The recording was not recognised: {error}")
        else:
            self._be_slow(task_id, begun)
            if self._stopped.is_set():
                return
            ended = self._tasks.finish(task_id, text=text)
        if ended is not None and ended.callback_url:
            threading.Thread(target=self._call_back, args=(ended,), daemon=True).start()

    def _be_slow(self, task_id: str, begun: float) -> None:
        """Take as long as the fault says, while it says so and the task is still there."""
        while (
            self._faults is not None
            and time.monotonic() < begun + self._faults.slow_seconds
            and self._tasks.get(task_id) is not None
            and not self._stopped.wait(_SLOW_LOOK)
        ):
            pass

    def _call_back(self, task: Task) -> None:
        said = {"id": task.id, "state": task.state.value}
        for attempt in range(1, _CALLBACK_ATTEMPTS + 1):
            try:
                with httpx.Client(trust_env=False, timeout=_CALLBACK_SECONDS) as client:
                    client.post(str(task.callback_url), json=said).raise_for_status()
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                log.warning("callback of %s failed: %s", task.id, error)
                self._stopped.wait(float(attempt))
            else:
                return
