"""NoHints: the port without a Redis."""

from __future__ import annotations

from kernel.hints import Hints, NoHints


def test_nothing_is_kept_and_nothing_is_proposed() -> None:
    hints: Hints = NoHints()
    hints.push("q", "wf_a", priority=1, at_ms=5)
    hints.put_timer("q", "wf_a", at_ms=5)
    hints.put_lease("q", "wf_a", "tok", expires_ms=5)
    assert hints.pop("q") is None
    assert not hints.has_due("q")
    assert hints.oldest_due_ms("q") is None
    assert not hints.is_next("q", priority=0, at_ms=5)
    assert hints.depth("q") == {}
    assert hints.due_timers("q", limit=5) == []
    assert hints.due_leases("q", limit=5) == []


def test_dropping_what_was_never_kept_is_harmless() -> None:
    hints: Hints = NoHints()
    hints.drop_timer("q", "wf_a", score_ms=5)
    hints.drop_lease("q", "wf_a", "tok", score_ms=5)
    hints.clear_bell("q")
    hints.set_marker()
    hints.close()


def test_every_caller_sends_its_own_wakeup() -> None:
    hints: Hints = NoHints()
    assert [hints.ring("q"), hints.ring("q"), hints.ring_from_tick("q")] == [True, True, True]


def test_there_are_no_lanes_that_could_have_been_lost() -> None:
    assert NoHints().marker_present()
