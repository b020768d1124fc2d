"""Breaker: refuses at once while open, tries one call at a time, and forgets on success."""

from __future__ import annotations

import pytest

from kernel.errors import HintsUnavailable
from kernel.hints.breaker import Breaker


class Clock:
    """Monotonic seconds the test moves by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock=clock)


def refuses(breaker: Breaker) -> bool:
    try:
        breaker.abandoned(breaker.admit())
    except HintsUnavailable:
        return True
    return False


def test_a_closed_breaker_admits_everybody(breaker: Breaker) -> None:
    tickets = [breaker.admit() for _ in range(3)]
    for ticket in tickets:
        breaker.answered(ticket)
    assert not refuses(breaker)


def test_silence_opens_it_for_one_second(breaker: Breaker, clock: Clock) -> None:
    breaker.silent(breaker.admit())
    clock.now += 0.99
    assert refuses(breaker)
    clock.now += 0.01
    assert not refuses(breaker)


def test_each_failed_trial_doubles_the_pause_up_to_five_seconds(
    breaker: Breaker, clock: Clock
) -> None:
    breaker.silent(breaker.admit())
    for pause in (1.0, 2.0, 4.0, 5.0, 5.0):
        clock.now += pause - 0.01
        assert refuses(breaker)
        clock.now += 0.02
        breaker.silent(breaker.admit())


def test_an_answered_trial_closes_it_and_forgets_the_doubling(
    breaker: Breaker, clock: Clock
) -> None:
    breaker.silent(breaker.admit())
    clock.now += 1
    breaker.silent(breaker.admit())
    clock.now += 2
    breaker.answered(breaker.admit())
    breaker.silent(breaker.admit())
    clock.now += 1
    assert not refuses(breaker)


def test_only_one_trial_runs_at_a_time(breaker: Breaker, clock: Clock) -> None:
    breaker.silent(breaker.admit())
    clock.now += 1
    trial = breaker.admit()
    assert refuses(breaker)
    breaker.answered(trial)
    assert not refuses(breaker)


def test_an_abandoned_trial_leaves_its_place_to_the_next(breaker: Breaker, clock: Clock) -> None:
    breaker.silent(breaker.admit())
    clock.now += 1
    breaker.abandoned(breaker.admit())
    trial = breaker.admit()
    breaker.answered(trial)
    assert not refuses(breaker)


def test_calls_on_their_way_when_it_opened_do_not_double_the_pause(
    breaker: Breaker, clock: Clock
) -> None:
    on_their_way = [breaker.admit() for _ in range(5)]
    for ticket in on_their_way:
        clock.now += 0.1
        breaker.silent(ticket)
    clock.now += 0.61
    assert not refuses(breaker)


def test_a_late_answer_from_before_does_not_close_it(breaker: Breaker) -> None:
    early = breaker.admit()
    breaker.silent(breaker.admit())
    breaker.answered(early)
    assert refuses(breaker)


def test_a_late_answer_from_before_does_not_speak_for_the_trial(
    breaker: Breaker, clock: Clock
) -> None:
    early = breaker.admit()
    breaker.silent(breaker.admit())
    clock.now += 1
    trial = breaker.admit()
    breaker.answered(early)
    breaker.silent(early)
    breaker.abandoned(early)
    assert refuses(breaker)
    breaker.answered(trial)
    assert not refuses(breaker)


def test_a_ticket_counts_once(breaker: Breaker, clock: Clock) -> None:
    breaker.silent(breaker.admit())
    clock.now += 1
    trial = breaker.admit()
    breaker.silent(trial)
    breaker.silent(trial)
    breaker.answered(trial)
    clock.now += 1.5
    assert refuses(breaker)


def test_a_refusal_says_when_the_next_trial_is(breaker: Breaker) -> None:
    breaker.silent(breaker.admit())
    with pytest.raises(HintsUnavailable, match=r"next trial in 1\.0 s"):
        breaker.admit()
