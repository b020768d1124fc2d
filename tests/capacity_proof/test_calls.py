"""The judge of the other tests is judged: it sees every violation it is there for."""

from typing import Any

import pytest

from tests.capacity_proof.calls import (
    Call,
    displacement,
    lost,
    most_in_flight,
    most_in_window,
    utilisation,
    violations,
)


def call(workflow: str, began: float, ended: float | None, **more: Any) -> Call:
    owner = more.pop("owner", f"{workflow}:call:1")
    return Call(
        workflow=workflow, step="call", owner=owner, group="g", granted=None,
        began=began, began_at=began, ended=ended, **more,
    )  # fmt: skip


def test_overlapping_calls_are_counted() -> None:
    calls = [call("a", 0, 2), call("b", 1, 3), call("c", 2, 4)]
    assert most_in_flight(calls) == 2
    assert violations(calls, 2) == 0
    assert violations(calls, 1) == 2


def test_a_call_that_never_ended_is_in_flight_for_ever() -> None:
    assert most_in_flight([call("a", 0, None), call("b", 50, 51)]) == 2


def test_a_call_whose_step_was_begun_elsewhere_meanwhile_is_one_of_a_lost_claim() -> None:
    stopped = call("a", 0, 10, owner="a:call:old")
    again = call("a", 5, 6, owner="a:call:new")
    other = call("b", 1, 2)
    assert lost([stopped, again, other]) == [stopped]
    assert most_in_flight([stopped, again, other], apart=[stopped]) == 1
    assert lost([call("a", 0, 1, owner="a:call:old"), again]) == []


@pytest.mark.parametrize(
    ("rate", "moments", "most"),
    [(2.0, [0, 0.1, 1.0, 1.1], 2), (2.0, [0, 0.5, 0.9], 3), (0.5, [0, 2.0], 1), (0.5, [0, 1.9], 2)],
)
def test_starts_are_counted_in_every_window(rate: float, moments: list[float], most: int) -> None:
    assert most_in_window(moments, rate) == most


def test_use_is_measured_from_the_first_begin_to_the_last_end() -> None:
    assert utilisation([call("a", 0, 1), call("b", 0, 2)], limit=2) == pytest.approx(0.75)


def test_the_farthest_from_its_place_is_found() -> None:
    calls = [call("b", 0, 1), call("c", 1, 2), call("a", 2, 3)]
    assert displacement(calls, ["a", "b", "c"]) == 2
