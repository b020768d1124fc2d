"""Alarms: a block that takes too long is told, others cost nothing and ring never."""

from __future__ import annotations

import threading

from kernel.engine.alarms import Alarms
from tests.kit.waiting import eventually, never


def test_a_block_within_its_time_never_rings() -> None:
    alarms, rung = Alarms(), threading.Event()
    with alarms.after(0.05, rung.set) as alarm:
        pass
    never(rung.is_set, during=0.15)
    assert not alarm.is_over
    alarms.close()


def test_a_block_past_its_time_rings_once_and_knows() -> None:
    alarms, rings = Alarms(), []
    with alarms.after(0.02, lambda: rings.append(1)) as alarm:
        eventually(lambda: rings)
    assert alarm.is_over
    never(lambda: len(rings) > 1, during=0.1)
    alarms.close()


def test_a_shorter_limit_set_later_rings_first() -> None:
    alarms, rung = Alarms(), []
    with (
        alarms.after(60, lambda: rung.append("long")),
        alarms.after(0.02, lambda: rung.append("short")),
    ):
        eventually(lambda: rung)
    assert rung == ["short"]
    alarms.close()


def test_limits_of_many_threads_ring_for_their_own_block_only() -> None:
    alarms = Alarms()
    over: dict[int, bool] = {}

    def block(number: int) -> None:
        rung = threading.Event()
        with alarms.after(0.02 if number % 2 else 60, rung.set) as alarm:
            if number % 2:
                assert rung.wait(10)
        over[number] = alarm.is_over

    threads = [threading.Thread(target=block, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert over == {number: bool(number % 2) for number in range(40)}
    alarms.close()


def test_closed_alarms_let_their_thread_end() -> None:
    alarms = Alarms()
    with alarms.after(60, lambda: None):
        alarms.close()
    thread = alarms._thread
    assert thread is not None
    eventually(lambda: not thread.is_alive())
