"""What the holder of a claim does next follows from the stored facts alone."""

from typing import Any

import pytest

from kernel.protocol import readiness as r
from tests.unit.instances import CANCELED, EARLIER, LATER, NOW, instance, waits

FREE: dict[str, list[str]] = {"a": [], "b": []}


@pytest.mark.parametrize(
    ("steps", "action"),
    [
        ({"a": "pending", "b": "pending"}, r.RunWave(("a",))),
        ({"a": "completed", "b": "pending"}, r.RunWave(("b",))),
        ({"a": "skipped", "b": "pending"}, r.RunWave(("b",))),
        ({"a": "running", "b": "pending"}, r.RunWave(("a",))),
        ({"a": "failed", "b": "pending"}, r.EnterFailing("a")),
        ({"a": "completed", "b": "completed"}, r.AllDone()),
        ({"a": "completed", "b": "skipped"}, r.AllDone()),
        ({"a": {"status": "pending", "not_before": LATER}, "b": "pending"}, r.Release()),
        ({"a": {"status": "pending", "not_before": NOW}, "b": "pending"}, r.RunWave(("a",))),
        ({"a": "waiting", "b": "pending"}, r.Release()),
        ({"a": CANCELED, "b": "pending"}, r.FinishCanceled()),
        ({"a": CANCELED, "b": "failed"}, r.FinishCanceled()),
        ({"a": {"status": "running", "recoveries": 5}, "b": "pending"}, r.GiveUpLost("a")),
        ({"a": {"status": "running", "recoveries": 4}, "b": "pending"}, r.RunWave(("a",))),
        ({"a": {"status": "pending", "recoveries": 5}, "b": "pending"}, r.RunWave(("a",))),
    ],
)
def test_a_line_of_two_steps_goes_on_by_its_statuses(
    steps: dict[str, Any], action: r.Action
) -> None:
    assert r.next_action(instance(steps), NOW, max_recoveries=5) == action


@pytest.mark.parametrize(
    ("steps", "action"),
    [
        ({"a": "pending", "b": "pending"}, r.RunWave(("a", "b"))),
        ({"a": "failed", "b": "pending"}, r.EnterFailing("a")),
        ({"a": "failed", "b": "running"}, r.EnterFailing("a")),
        ({"a": "running", "b": "running"}, r.RunWave(("a", "b"))),
        ({"a": {"status": "pending", "not_before": LATER}, "b": "pending"}, r.RunWave(("b",))),
        # Those whose process died before run alone, after the innocents.
        ({"a": {"status": "running", "recoveries": 1}, "b": "pending"}, r.RunWave(("b",))),
        (
            {
                "a": {"status": "running", "recoveries": 2},
                "b": {"status": "running", "recoveries": 1},
            },
            r.RunWave(("b",)),
        ),
    ],
)
def test_steps_without_dependencies_run_together(steps: dict[str, Any], action: r.Action) -> None:
    assert r.next_action(instance(steps, depends_on=FREE), NOW, max_recoveries=5) == action


def test_due_waits_are_turned_into_pending_steps_before_anything_runs() -> None:
    seen = instance(
        {"a": "waiting", "b": "pending", "c": "waiting"},
        depends_on={"a": [], "b": [], "c": []},
        waits=waits(("a", EARLIER), ("c", LATER)),
    )
    assert r.next_action(seen, NOW, max_recoveries=5) == r.ActivateDue(("a",))


def test_a_wait_for_a_signal_alone_is_never_due() -> None:
    seen = instance({"a": "waiting"}, waits=waits(("a", None)))
    assert r.next_action(seen, NOW, max_recoveries=5) == r.Release()


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "failing"},
        {"status": "running", "finalizer": {"kind": "success"}},
    ],
)
def test_an_instance_at_its_end_runs_its_finalizer_and_nothing_else(fields: dict[str, Any]) -> None:
    seen = instance({"a": "completed", "b": "pending"}, **fields)
    assert r.next_action(seen, NOW, max_recoveries=5) == r.RunFinalizer()


def test_the_next_wake_is_the_earliest_of_backoffs_and_waits() -> None:
    seen = instance(
        {
            "a": {"status": "waiting", "not_before": LATER},
            "b": {"status": "pending", "not_before": EARLIER},
            "c": {"status": "pending"},
        },
        depends_on={"a": [], "b": [], "c": ["a"]},
    )
    assert r.sleepers(seen) == ("b", "a")
    assert r.next_wake(seen) == EARLIER
