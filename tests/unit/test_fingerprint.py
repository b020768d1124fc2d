"""The identity of a step protocol: what it covers, what it leaves out, and that it never drifts."""

import pytest

from kernel import Definition, OnFailed, Plan, RetryPolicy, Step
from kernel.definition import fingerprint

GOLDEN = "a67db669ad9eee85ff041ba15df819adfd4623e8c61d2889ef54fac7c8a148ce"


def test_the_fingerprint_of_a_known_plan_never_changes() -> None:
    # Stored instances carry it: another value would defer every running workflow at a deploy.
    plan = Plan("order.sync", queue="work", steps=["reserve", "charge", "ship"])
    assert plan.fingerprint == GOLDEN


def test_it_covers_type_names_order_and_dependencies() -> None:
    base = fingerprint("t", ["a", "b"], {"a": [], "b": ["a"]})
    others = [
        fingerprint("u", ["a", "b"], {"a": [], "b": ["a"]}),
        fingerprint("t", ["a", "c"], {"a": [], "c": ["a"]}),
        fingerprint("t", ["b", "a"], {"a": [], "b": ["a"]}),
        fingerprint("t", ["a", "b"], {"a": [], "b": []}),
        fingerprint("t", ["a"], {"a": []}),
    ]
    assert len({base, *others}) == len(others) + 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ta", ["b"], {"b": []}), ("t", ["ab"], {"ab": []})),
        (("t", ["a", "b"], {"a": ["b"], "b": []}), ("t", ["a", "b"], {"a": [], "b": ["b"]})),
        (("t", ["a", "bc"], {"a": [], "bc": []}), ("t", ["ab", "c"], {"ab": [], "c": []})),
    ],
)
def test_no_two_protocols_run_together_into_one(
    one: tuple[str, list[str], dict[str, list[str]]],
    other: tuple[str, list[str], dict[str, list[str]]],
) -> None:
    assert fingerprint(*one) != fingerprint(*other)


def test_the_order_in_which_dependencies_are_written_does_not_count() -> None:
    graph = {"a": [], "b": [], "c": ["a", "b"]}
    assert fingerprint("t", list("abc"), graph) == fingerprint(
        "t", list("abc"), {**graph, "c": ["b", "a"]}
    )


def test_it_leaves_out_activities_timeouts_retries_capacity_and_queue() -> None:
    one = Plan("t.x", queue="work", steps=["a"])
    other = Plan("t.x", queue="elsewhere", steps=["a"])
    changed = Definition(
        other,
        steps={
            "a": Step(
                print,
                timeout=5,
                retry=RetryPolicy(max_retry=9),
                on_failed=OnFailed.SKIP,
                traffic_resource="psp",
            )
        },
        success_finalizer=print,
    )
    assert changed.plan.fingerprint == one.fingerprint
