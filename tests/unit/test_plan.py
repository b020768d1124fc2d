"""A plan is checked where it is written; every refusal says what to write instead."""

from typing import Any

import pydantic
import pytest

from kernel import DefinitionError, InvalidValue, Plan
from kernel.limits import PLAN_STEPS


class Order(pydantic.BaseModel):
    order_id: str
    lines: list[int] = []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": []}, "non-empty list"),
        ({"steps": "fetch"}, "non-empty list"),
        ({"steps": ["fetch", "fetch"]}, "named twice"),
        ({"steps": ["Fetch"]}, "lower case"),
        ({"steps": ["a.b"]}, "lower case"),
        ({"steps": ["$where"]}, "lower case"),
        ({"steps": ["1st"]}, "lower case"),
        ({"steps": [None]}, "lower case"),
        ({"steps": ["x" * 101]}, "longer than 100"),
        ({"steps": [f"s{i}" for i in range(PLAN_STEPS + 1)]}, "at most 200"),
        ({"steps": ["a"], "queue": "Work"}, "'content'"),
        ({"steps": ["a"], "queue": ""}, "'content'"),
        ({"steps": ["a"], "type": "Order"}, "dotted lower case"),
        ({"steps": ["a", "b"], "depends_on": {"a": []}}, r"missing: \['b'\]"),
        ({"steps": ["a"], "depends_on": {"a": [], "c": []}}, r"not a step: \['c'\]"),
        ({"steps": ["a"], "depends_on": {"a": ["z"]}}, "'z', which is no step"),
        ({"steps": ["a", "b"], "depends_on": {"a": [], "b": "a"}}, "as a list"),
        ({"steps": ["a"], "depends_on": {"a": ["a"]}}, r"\['a'\] depend on each other"),
        ({"steps": ["a", "b"], "depends_on": {"a": ["b"], "b": ["a"]}}, r"\['a', 'b'\]"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_with_what_to_write(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        Plan(**({"type": "order.sync", "queue": "work"} | arguments))


def test_steps_without_dependencies_form_a_line() -> None:
    plan = Plan("order.sync", queue="work", steps=["a", "b", "c"])
    assert plan.depends_on == {"a": (), "b": ("a",), "c": ("b",)}


def test_a_dependency_named_twice_counts_once() -> None:
    plan = Plan("order.sync", queue="work", steps=["a", "b"], depends_on={"a": [], "b": ["a", "a"]})
    assert plan.depends_on["b"] == ("a",)


def test_input_is_checked_against_the_plans_model_and_comes_back_as_it() -> None:
    plan = Plan("order.sync", queue="work", steps=["a"], input=Order)
    dumped = plan.dump_input({"order_id": "42", "lines": [1]})
    assert dumped == {"order_id": "42", "lines": [1]}
    assert plan.dump_input(Order(order_id="42", lines=[1])) == dumped
    assert plan.load_input(dumped) == Order(order_id="42", lines=[1])


@pytest.mark.parametrize("value", [None, 5, {}, {"order_id": 5}])
def test_input_the_model_refuses_is_a_typed_error(value: object) -> None:
    plan = Plan("order.sync", queue="work", steps=["a"], input=Order)
    with pytest.raises(InvalidValue):
        plan.dump_input(value)


class Loose(pydantic.BaseModel):
    what: Any


def test_a_model_that_cannot_be_written_as_json_is_a_typed_error() -> None:
    plan = Plan("order.sync", queue="work", steps=["a"], input=Loose)
    untyped = Plan("order.sync", queue="work", steps=["a"])
    for checked in (plan, untyped):
        with pytest.raises(InvalidValue, match="JSON"):
            checked.dump_input(Loose(what=object()))


def test_the_refusal_of_an_input_names_the_place() -> None:
    plan = Plan("order.sync", queue="work", steps=["a"], input=Order)
    with pytest.raises(InvalidValue) as refused:
        plan.dump_input({"order_id": "42", "lines": [1, "two"]})
    assert refused.value.path == "$.lines[1]"
    assert "input of order.sync" in str(refused.value)
