"""Directives and the clock of the face: seconds in every form, refused where they make no sense."""

from datetime import timedelta

import pytest

from kernel import InvalidValue, KernelConfig, UsageError
from kernel.context import Cancellation
from kernel.directives import as_seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(0, 0.0), (1.5, 1.5), (timedelta(minutes=1), 60.0), (366 * 86400, 366 * 86400.0)],
)
def test_seconds_may_be_numbers_or_timedeltas(value: object, seconds: float) -> None:
    assert as_seconds(value, what="delay") == seconds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [-1, float("nan"), float("inf"), "5", None, True, timedelta(days=367), [1]]
)
def test_a_delay_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="delay"):
        as_seconds(value, what="delay")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"mongo_url": ""},
        {"database": ""},
        {"key_prefix": ""},
        {"lease": 0},
        {"lease": "15"},
        {"hang_grace": -1},
        {"max_recoveries": -1},
    ],
)
def test_a_configuration_that_cannot_work_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        KernelConfig(**({"mongo_url": "mongodb://127.0.0.1"} | settings))  # type: ignore[arg-type]


def test_a_cancellation_keeps_its_first_reason_and_tells_late_listeners() -> None:
    heard: list[str] = []
    cancelled = Cancellation()
    cancelled.set("timeout")
    cancelled.set("claim lost")
    cancelled.on_set(lambda: heard.append("late"))
    assert (cancelled.reason, heard) == ("timeout", ["late"])
    assert cancelled.wait(0)
