"""Definitions, steps and retry policies refuse at once what could only fail later."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kernel import Definition, DefinitionError, OnFailed, Plan, RetryPolicy, Step, UnknownWorkflow
from kernel.definition import Registry

PLAN = Plan("order.sync", queue="work", steps=["a", "b"])


def work(ctx: object) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": {"a": Step(work)}}, r"lacks an activity for \['b'\]"),
        ({"steps": {"a": Step(work), "b": Step(work), "c": Step(work)}}, r"no step \['c'\]"),
        ({"steps": {"a": Step(work), "b": work}}, r"wrap the activity of 'b' in Step"),
        ({"success_finalizer": "settle"}, "success_finalizer must be callable"),
        ({"failure_finalizer": 5}, "failure_finalizer must be callable"),
        ({"prepare_context": 5}, "prepare_context must be callable"),
    ],
)
def test_a_definition_that_cannot_run_is_refused(arguments: dict[str, Any], message: str) -> None:
    steps = {"a": Step(work), "b": Step(work)}
    with pytest.raises(DefinitionError, match=message):
        Definition(PLAN, **({"steps": steps} | arguments))


#: Seen as untyped: what a caller without a type checker may write.
AnyStep: Callable[..., object] = Step
AnyPolicy: Callable[..., object] = RetryPolicy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AnyStep("work"), "callable activity"),
        (lambda: AnyStep(None), "callable activity"),
        (lambda: AnyStep(work, timeout=0), "more than 0"),
        (lambda: AnyStep(work, timeout=-1), "zero or more"),
        (lambda: AnyStep(work, timeout=math.nan), "finite"),
        (lambda: AnyStep(work, timeout=math.inf), "finite"),
        (lambda: AnyStep(work, timeout="60"), "number or a timedelta"),
        (lambda: AnyStep(work, timeout=True), "number or a timedelta"),
        (lambda: AnyStep(work, timeout=timedelta(days=8)), "belongs in Sleep"),
        (lambda: AnyStep(work, on_failed="ignore"), "OnFailed.STOP"),
        (lambda: AnyPolicy(max_retry=-1), "0 or more"),
        (lambda: AnyPolicy(max_retry=1.5), "0 or more"),
        (lambda: AnyPolicy(max_retry=True), "0 or more"),
        (lambda: AnyPolicy(backoff="linear"), "none, fixed or exponential"),
        (lambda: AnyPolicy(initial=-1), "zero or more"),
        (lambda: AnyPolicy(initial=10, cap=5), "cap must not be shorter"),
        (lambda: AnyPolicy(non_retryable=ValueError), "tuple of exception classes"),
        (lambda: AnyPolicy(non_retryable=("ValueError",)), "tuple of exception classes"),
    ],
)
def test_a_step_or_policy_that_makes_no_sense_is_refused(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        make()


def test_times_may_be_given_as_timedeltas() -> None:
    step = Step(work, timeout=timedelta(minutes=2), on_failed="skip")  # type: ignore[arg-type]
    assert step.timeout_seconds == 120
    assert step.on_failed is OnFailed.SKIP


def test_a_fixed_backoff_may_be_longer_than_the_cap_of_exponential_ones() -> None:
    assert RetryPolicy(backoff="fixed", initial=600).delay_seconds(7, jitter=0.1) == 600


def test_no_backoff_waits_not_at_all() -> None:
    assert RetryPolicy(backoff="none").delay_seconds(3, jitter=0.9) == 0


@pytest.mark.parametrize(
    ("failures", "bound"), [(1, 2), (2, 4), (3, 8), (4, 10), (1000, 10), (10**9, 10)]
)
def test_exponential_backoff_doubles_up_to_its_cap_with_full_jitter(
    failures: int, bound: float
) -> None:
    policy = RetryPolicy(initial=2, cap=10)
    assert policy.delay_seconds(failures, jitter=0) == 0
    assert policy.delay_seconds(failures, jitter=0.5) == bound / 2
    assert policy.delay_seconds(failures, jitter=0.999) < bound


def test_a_type_is_registered_once_and_repeats_are_harmless() -> None:
    registry = Registry()
    definition = Definition(PLAN, steps={"a": Step(work), "b": Step(work)})
    registry.register(definition)
    registry.register_plan(Plan("order.sync", queue="work", steps=["a", "b"]))
    registry.register(definition)
    assert registry.definition("order.sync") is definition
    assert registry.queues() == ["work"]


@pytest.mark.parametrize(("steps", "queue"), [(["a"], "work"), (["a", "b"], "other")])
def test_a_type_with_other_steps_or_queue_is_refused(steps: list[str], queue: str) -> None:
    registry = Registry()
    registry.register_plan(PLAN)
    with pytest.raises(DefinitionError, match="keep one, or use another type"):
        registry.register_plan(Plan("order.sync", queue=queue, steps=steps))


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    registry = Registry()
    registry.register_plan(PLAN)
    with pytest.raises(UnknownWorkflow, match=r"'order.refund'.*known: \['order.sync'\]"):
        registry.plan("order.refund")
