"""Whatever activities return or raise is kept equal, or becomes their own typed failure."""

import asyncio
import sys
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernel import (
    ActivityContext,
    Definition,
    InstanceStatus,
    Kernel,
    OnFailed,
    Plan,
    Sleep,
    Step,
)
from kernel.limits import ERROR_MESSAGE_BYTES, NESTING_LEVELS, OUTPUT_BYTES
from kernel.testing import run_until_idle
from tests.kit.kernels import QUEUE, MakeKernel, definition, ended, start

KEYS = st.one_of(
    st.sampled_from(["", "$", ".", "~", "$ref", "$id", "$$NOW", "a.b", "~~", "_id"]),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.sampled_from(["$$NOW", "$input", "\x00", "2026-01-01T00:00:00Z"]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def same(one: object, other: object) -> bool:
    """Equal, and of equal types all the way down: 1 is not True, and not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"k": value}
    return value


ECHO = definition(
    "test.echo",
    {
        "a": lambda ctx: Sleep(0, checkpoint=ctx.input) if ctx.resume is None else ctx.checkpoint,
        "b": lambda ctx: ctx.output("a"),
    },
)


@pytest.fixture
def echo(make_kernel: MakeKernel) -> Kernel:
    return make_kernel(ECHO, with_redis=False)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=VALUES)
@example(value={"$ref": "x", "$id": 1, "$db": "y"})
@example(value=nested(NESTING_LEVELS))
@example(value={"$numberLong": "1", "$oid": "2", "$literal": "$x"})
@example(value="x" * 60_000)
def test_any_json_value_comes_back_equal_as_input_checkpoint_and_output(
    echo: Kernel, value: object
) -> None:
    workflow_id = start(echo, ECHO, value, biz_key=f"echo:{uuid.uuid4()}")
    echo.drain([QUEUE])
    instance = echo.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert same(instance.input, value)
    assert same(instance.output["a"], value)
    assert same(instance.output["b"], value)


async def _coroutine() -> str:
    return "from a lambda"


def _raise(error: BaseException) -> Any:
    raise error


def _recurse(n: int) -> int:
    return _recurse(n + 1) + 1


def _loop() -> Any:
    held: list[Any] = []
    held.append(held)
    return held


#: What an activity returns, and the code of its failure.
BAD_RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "a generator": (lambda: (n for n in range(3)), "invalid_value"),
    "a lock": (threading.Lock, "invalid_value"),
    "a set": (lambda: {1, 2}, "invalid_value"),
    "a tuple": (lambda: (1, 2), "invalid_value"),
    "a datetime": (lambda: datetime.now(UTC), "invalid_value"),
    "bytes": (lambda: b"x", "invalid_value"),
    "a class": (lambda: int, "invalid_value"),
    "the context": (lambda: sys.modules, "invalid_value"),
    "NaN": (lambda: {"a": float("nan")}, "invalid_value"),
    "2^64": (lambda: 2**64, "invalid_value"),
    "a huge key": (lambda: {10**5000: 1}, "invalid_value"),
    "NUL in a key": (lambda: {"a\x00": 1}, "invalid_value"),
    "a surrogate": (lambda: ["\ud800"], "invalid_value"),
    "depth 200": (lambda: nested(200), "invalid_value"),
    "depth 5000": (lambda: nested(5000), "invalid_value"),
    "itself": (_loop, "invalid_value"),
    "300 KiB": (lambda: "x" * 300 * 1024, "value_too_large"),
    "20 MiB": (lambda: "x" * 20 * 1024 * 1024, "value_too_large"),
}


@pytest.mark.parametrize("what", BAD_RESULTS)
def test_a_result_that_cannot_be_kept_fails_its_step_without_retry(
    make_kernel: MakeKernel, what: str
) -> None:
    result, code = BAD_RESULTS[what]
    order = definition("test.bad", {"a": lambda _: result()})
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert instance.error is not None
    assert instance.error.code == code
    assert "output of a" in instance.error.message
    assert instance.steps["a"].attempt == 1


@pytest.mark.parametrize(
    "size", [OUTPUT_BYTES - 2, OUTPUT_BYTES - 1], ids=["at the limit", "one byte over"]
)
def test_an_output_may_be_as_large_as_its_limit(make_kernel: MakeKernel, size: int) -> None:
    order = definition("test.large", {"a": lambda _: "x" * size})
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    fits = size + 2 <= OUTPUT_BYTES
    assert (kernel.get(workflow_id).status is InstanceStatus.COMPLETED) == fits


def test_outputs_that_together_outgrow_the_document_fail_the_step_that_is_too_much(
    make_kernel: MakeKernel,
) -> None:
    names = [f"s{i}" for i in range(20)]
    order = definition("test.large", {name: lambda _: "x" * 250 * 1024 for name in names})
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.FAILED
    assert instance.error is not None
    assert instance.error.code == "value_too_large"
    assert 14 <= len(instance.output) <= 16, "4 MiB in all"


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "NUL and surrogates": (lambda: ValueError("\x00 \ud800 $a.b"), "ValueError"),
    "a huge message": (lambda: ValueError("é" * 20_000_000), "ValueError"),
    "no text at all": (Speechless, "Speechless"),
    "SystemExit": (lambda: SystemExit(1), "SystemExit"),
    "KeyboardInterrupt": (KeyboardInterrupt, "KeyboardInterrupt"),
    "MemoryError": (MemoryError, "MemoryError"),
    "GeneratorExit": (GeneratorExit, "GeneratorExit"),
    "StopIteration": (lambda: StopIteration(1), "StopIteration"),
    "CancelledError": (asyncio.CancelledError, "CancelledError"),
    "a group": (lambda: BaseExceptionGroup("g", [SystemExit()]), "BaseExceptionGroup"),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", ERRORS)
def test_whatever_an_activity_raises_is_its_own_failure_and_the_worker_lives_on(
    make_kernel: MakeKernel, what: str, is_async: bool
) -> None:
    error, code = ERRORS[what]

    async def bad(ctx: ActivityContext) -> None:
        raise error()

    async def good(ctx: ActivityContext) -> str:
        await asyncio.sleep(0)
        return "alive"

    order = definition(
        "test.raise",
        {
            "a": Step(bad if is_async else lambda _: _raise(error()), on_failed=OnFailed.SKIP),
            "b": good,
        },
    )
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.output == {"b": "alive"}
    failed = instance.steps["a"].error
    assert failed is not None
    assert len(failed.message.encode()) <= ERROR_MESSAGE_BYTES
    if is_async and what in ("CancelledError", "StopIteration"):
        return  # the event loop itself gives these another meaning
    assert failed.code == code


def test_an_endless_recursion_is_a_failure_like_any_other(make_kernel: MakeKernel) -> None:
    order = definition("test.raise", {"a": lambda _: _recurse(0)})
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    error = kernel.get(workflow_id).error
    assert error is not None
    assert error.code == "RecursionError"


def test_a_coroutine_returned_by_a_plain_function_is_awaited(make_kernel: MakeKernel) -> None:
    order = definition("test.lambda", {"a": lambda _: _coroutine()})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    run_until_idle(kernel, [QUEUE])
    assert kernel.get(workflow_id).output == {"a": "from a lambda"}


def test_an_input_its_model_refuses_later_is_the_steps_own_failure(make_kernel: MakeKernel) -> None:
    class Old(pydantic.BaseModel):
        order: str

    class New(pydantic.BaseModel):
        order: str
        customer: str

    def made(model: type[pydantic.BaseModel]) -> Definition:
        plan = Plan("test.model", queue=QUEUE, steps=["a"], input=model)
        return Definition(plan, steps={"a": Step(lambda ctx: ctx.input.order)})

    publisher, worker = make_kernel(made(Old)), make_kernel(made(New))
    workflow_id = start(publisher, made(Old), {"order": "42"})
    assert ended(worker, workflow_id).status is InstanceStatus.FAILED
    error = worker.get(workflow_id).error
    assert error is not None
    assert "customer" in error.message


def test_check_lets_an_activity_ask_before_it_acts_outside(make_kernel: MakeKernel) -> None:
    def careful(ctx: ActivityContext) -> str:
        ctx.check({"job": "x" * 60_000})
        ctx.check({"job": "x" * 70_000})
        return "submitted"

    order = definition("test.check", {"a": careful})
    kernel = make_kernel(order, with_redis=False)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    error = kernel.get(workflow_id).error
    assert error is not None
    assert error.code == "value_too_large"
    assert "checkpoint of a" in error.message
