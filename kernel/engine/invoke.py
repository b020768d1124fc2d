"""The only door into activity code (design 1.5).

Every way a call can end becomes one value: result, directive, exception (also SystemExit,
RecursionError, MemoryError), timeout, or a hang. After a timeout the call is cancelled and waited
for, so that two attempts do not overlap. Where a keeper outside ends a process that hangs, the call
is made in the claim's own thread; elsewhere in another, which is abandoned past the hang grace.

Guarantees that nothing activity code raises or returns leaves this module as anything but a value.
Leaves to others: what the value means for the step (`kernel.protocol.homecoming`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from kernel import limits
from kernel.context import Cancellation
from kernel.definition import RetryPolicy
from kernel.directives import Sleep, WaitForSignal, Yield, as_seconds
from kernel.engine.alarms import Alarms
from kernel.engine.threads import ActivityThreads, AsyncLoop
from kernel.errors import InvalidValue, NonRetryable, StepTimeout, WorkflowCanceled
from kernel.json_values import check_json, copied
from kernel.protocol.outcomes import Canceled, Completed, Directed, Failed, Outcome, encodable

Around = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Hung:
    """The call ignored its cancellation past the grace; its thread is left behind."""


class Invoker:
    """Calls activities and finalizers, bounded in time.

    `hang_grace` is how many seconds a cancelled call may take to leave before its thread is
    abandoned; None means that a keeper ends the process instead.
    """

    def __init__(self, *, around: Around, hang_grace: float | None) -> None:
        self._threads = ActivityThreads()
        self._loop = AsyncLoop()
        self._alarms = Alarms()
        self._around = around
        self._hang_grace = hang_grace

    def close(self) -> None:
        """End idle threads and the loop. On repeat: nothing."""
        self._threads.close()
        self._loop.close()
        self._alarms.close()

    def activity(
        self, call: Callable[[], Any], *, step: str, timeout: float, cancelled: Cancellation,
        retry: RetryPolicy,
    ) -> Outcome | Hung:  # fmt: skip
        """Call an activity once and say how it ended; `timeout` in seconds."""
        try:
            value, timed_out = self._call(call, timeout=timeout, cancelled=cancelled)
        except TimeoutError:
            return Hung()
        if timed_out:
            message = f"no result within {timeout:g} s"
            return Failed(
                code=StepTimeout.code, message=message, keeps_checkpoint=True, name="timeout"
            )
        if isinstance(value, BaseException):
            return failure(value, retry)
        return _result(value, step)

    def finalizer(
        self, call: Callable[[], Any], *, timeout: float, cancelled: Cancellation
    ) -> BaseException | None:
        """Call a finalizer once; return what it raised (StepTimeout after `timeout` seconds).

        Raises:
            TimeoutError: it hangs past the grace.
        """
        value, timed_out = self._call(call, timeout=timeout, cancelled=cancelled)
        if timed_out:
            return StepTimeout(f"no result within {timeout:g} s")
        return value if isinstance(value, BaseException) else None

    def _call(
        self, call: Callable[[], Any], *, timeout: float, cancelled: Cancellation
    ) -> tuple[Any, bool]:
        """Return (result or exception, timed out); TimeoutError after the hang grace."""
        if self._hang_grace is None:
            return self._call_here(call, timeout=timeout, cancelled=cancelled)
        future = self._threads.submit(lambda: self._inside(call, cancelled))
        timed_out = False
        try:
            concurrent.futures.wait([future], timeout=timeout)
            if not future.done():
                timed_out = True
                cancelled.set("timeout")
                concurrent.futures.wait([future], timeout=self._hang_grace)
        finally:
            if not future.done():
                cancelled.set("abandoned")
        if not future.done():
            raise TimeoutError
        raised = future.exception()
        return (raised if raised is not None else future.result()), timed_out

    def _call_here(
        self, call: Callable[[], Any], *, timeout: float, cancelled: Cancellation
    ) -> tuple[Any, bool]:
        with self._alarms.after(timeout, lambda: cancelled.set("timeout")) as alarm:
            try:
                value = self._inside(call, cancelled)
            except BaseException as exc:  # noqa: BLE001 - activity code may raise anything
                value = exc
        return value, alarm.is_over

    def _inside(self, call: Callable[[], Any], cancelled: Cancellation) -> Any:
        """Run in the thread of the call; a coroutine is moved to the loop and waited for here."""
        with self._around():
            value = call()
            if not inspect.iscoroutine(value):
                return value
            raised, result = self._loop.submit(_until_left(value, cancelled)).result()
            if raised is not None:
                raise raised
            return result


async def _until_left(coroutine: Any, cancelled: Cancellation) -> tuple[BaseException | None, Any]:
    """Await a coroutine; cancellation reaches it as CancelledError, and it is waited for."""
    task = asyncio.ensure_future(_captured(coroutine))
    loop = asyncio.get_running_loop()

    def leave() -> None:
        loop.call_soon_threadsafe(task.cancel)

    cancelled.on_set(leave)
    try:
        return await task
    except asyncio.CancelledError:
        return StepTimeout(f"the call was cancelled: {cancelled.reason}"), None


async def _captured(coroutine: Any) -> tuple[BaseException | None, Any]:
    """Return what a coroutine raises: SystemExit in a task would end the loop of all activities."""
    try:
        return None, await coroutine
    except asyncio.CancelledError:
        raise
    except BaseException as exc:  # noqa: BLE001 - activity code may raise anything
        return exc, None


def failure(exc: BaseException, retry: RetryPolicy) -> Outcome:
    """Return what an exception means; its text is made storable, however it looks."""
    message = text_of(exc)
    if isinstance(exc, WorkflowCanceled):
        return Canceled(message)
    fatal = isinstance(exc, (NonRetryable, InvalidValue, *retry.non_retryable))
    return Failed(
        code=encodable(_code_of(exc), limit_bytes=limits.ERROR_CODE_CHARACTERS),
        message=message,
        retryable=not fatal,
    )


def _result(value: Any, step: str) -> Outcome:
    try:
        if isinstance(value, Sleep | WaitForSignal | Yield):
            _check_directive(value, step)
            return Directed(replace(value, checkpoint=copied(value.checkpoint)))
        size = check_json(value, limit_bytes=limits.OUTPUT_BYTES, what=f"output of {step}")
    except InvalidValue as exc:
        return Failed(code=exc.code, message=text_of(exc), retryable=False)
    return Completed(copied(value), size)  # its code may keep what it returned


def _check_directive(directive: Sleep | WaitForSignal | Yield, step: str) -> None:
    check_json(
        directive.checkpoint, limit_bytes=limits.CHECKPOINT_BYTES, what=f"checkpoint of {step}"
    )
    match directive:
        case Sleep(delay):
            as_seconds(delay, what="Sleep(delay)")
        case WaitForSignal():
            if directive.poll_after is not None:
                as_seconds(directive.poll_after, what="WaitForSignal(poll_after)")
            for name in (directive.signal_type, directive.wait_key):
                is_text = isinstance(name, str) and "\0" not in name
                if not is_text or not 0 < len(name) <= limits.NAME_CHARACTERS:
                    raise InvalidValue(
                        f"must be text of 1 to {limits.NAME_CHARACTERS} characters without NUL",
                        what="WaitForSignal(signal_type, wait_key)",
                    )
                check_json(name, limit_bytes=limits.CHECKPOINT_BYTES, what="WaitForSignal")
            _check_generation(directive.generation)
        case Yield():
            pass


def _code_of(exc: BaseException) -> str:
    """An exception's own code if it has a textual one, else its class name."""
    code = getattr(exc, "code", None)
    return code if isinstance(code, str) and code else type(exc).__name__


def _check_generation(generation: object) -> None:
    is_int = isinstance(generation, int) and not isinstance(generation, bool)
    if not is_int or not 0 <= generation < 2**63:  # type: ignore[operator]
        raise InvalidValue("must be an integer from 0", what="WaitForSignal(generation)")


def text_of(exc: BaseException) -> str:
    """Return an exception's text, storable however it looks."""
    try:
        text = str(exc)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide the failure
        text = f"{type(exc).__name__} (its text cannot be shown)"
    return encodable(text or type(exc).__name__, limit_bytes=limits.ERROR_MESSAGE_BYTES)
