"""Cancellation: everybody who listens is told, whatever another listener does."""

from __future__ import annotations

from kernel.context import Cancellation


def test_a_listener_that_fails_keeps_none_of_the_others_from_being_told() -> None:
    cancelled, told = Cancellation(), []

    def fail() -> None:
        raise RuntimeError("activity code")

    cancelled.on_set(fail)
    cancelled.on_set(lambda: told.append("later"))
    cancelled.set("timeout")
    cancelled.on_set(fail)
    cancelled.on_set(lambda: told.append("late"))
    assert told == ["later", "late"]
    assert cancelled.reason == "timeout"
