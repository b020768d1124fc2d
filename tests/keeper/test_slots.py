"""What is read from the slots was published in one piece, whatever stopped the writer."""

import multiprocessing
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.keeper.processes import Process
from kernel.keeper.slots import CLAIMS, ClaimSlots, PublishedChild, PublishedClaim

ME = Process(4711, 99)

claims = st.builds(
    PublishedClaim,
    workflow_id=st.from_regex(r"wf_[0-9a-f]{32}", fullmatch=True),
    token=st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
    deadline=st.floats(min_value=0, max_value=1e9),
    step=st.none() | st.from_regex(r"[a-z][a-z0-9_]{0,99}", fullmatch=True),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(claims, max_size=4), min_size=1, max_size=4))
def test_the_last_publication_is_read_back_whole(rounds: list[list[PublishedClaim]]) -> None:
    slots = ClaimSlots(3)
    for published in rounds:
        slots.publish(1, ME, published)
        assert slots.read(1) == PublishedChild(1, ME, tuple(published))
    assert slots.read(0) is None
    assert slots.read(2) is None


def test_a_writer_stopped_half_way_leaves_its_last_word_in_force() -> None:
    """Sixteen rounds, so that both copies and the turn of the version are met."""
    slots = ClaimSlots(1)
    slots.publish(0, ME, [])
    slots.publish_head(0, ME, taken=1, cells=4)
    for number in range(16):
        good = PublishedClaim(f"wf_{number}", "t", 1.0, "step")
        slots.publish_claim(0, 3, good)
        with pytest.raises(UnicodeEncodeError):
            slots.publish_claim(0, 3, PublishedClaim("wf_new", "t", 2.0, "\ud800"))
        assert slots.read(0) == PublishedChild(0, ME, (good,), taken=1)


def test_a_claim_changes_without_its_neighbours() -> None:
    slots = ClaimSlots(2)
    first, second, third = (PublishedClaim(f"wf_{n}", f"t{n}", float(n), None) for n in range(3))
    slots.publish(0, ME, [first, second, third])
    slots.publish_claim(0, 1, None)
    assert slots.read(0) == PublishedChild(0, ME, (first, third))
    slots.publish_claim(0, 1, second)
    slots.publish_head(0, ME, taken=7, cells=3)
    assert slots.read(0) == PublishedChild(0, ME, (first, second, third), taken=7)
    slots.publish(0, Process(1, 2), [])
    assert slots.read(0) == PublishedChild(0, Process(1, 2), ())


@pytest.mark.parametrize("children", [1, 3, 8, 128])
def test_only_areas_that_were_used_are_named(children: int) -> None:
    slots = ClaimSlots(children)
    assert slots.seated() == []
    slots.write_beat(1.0)
    slots.request_stop()
    last, one = children - 1, PublishedClaim("wf_0", "t0", 1.0, None)
    slots.publish(last, ME, [one] * CLAIMS)
    slots.publish(last, Process(4712, 100), [])
    assert slots.seated() == [last]
    slots.publish(0, ME, [one])
    assert slots.seated() == sorted({0, last})
    assert slots.read(0) == PublishedChild(0, ME, (one,))


def test_cells_that_were_never_used_are_not_looked_at() -> None:
    slots = ClaimSlots(1)
    one, other = (PublishedClaim(f"wf_{n}", f"t{n}", float(n), None) for n in range(2))
    slots.publish(0, ME, [one])
    slots.publish_claim(0, 1, other)
    assert slots.read(0) == PublishedChild(0, ME, (one,))
    slots.publish_head(0, ME, taken=2, cells=2)
    assert slots.read(0) == PublishedChild(0, ME, (one, other), taken=2)


def test_a_successor_that_comes_during_a_look_lends_its_claims_to_no_dead_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = ClaimSlots(1)
    successor, claim = Process(4712, 100), PublishedClaim("wf_0", "t0", 1.0, None)
    slots.publish(0, ME, [claim])
    looked_at_cell = ClaimSlots._cell

    def taken_over(self: ClaimSlots, index: int, cell: int) -> int:
        monkeypatch.setattr(ClaimSlots, "_cell", looked_at_cell)
        slots.publish(0, successor, [claim])
        return looked_at_cell(self, index, cell)

    monkeypatch.setattr(ClaimSlots, "_cell", taken_over)
    assert slots.read(0) is None
    assert slots.read(0) == PublishedChild(0, successor, (claim,))


def test_a_reader_beside_a_busy_writer_sees_no_mixture() -> None:
    slots = ClaimSlots(1)
    writer = multiprocessing.get_context("fork").Process(target=_publish_for_ever, args=(slots,))
    writer.start()
    try:
        seen = set()
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            child = slots.read(0)
            for claim in child.claims if child is not None else ():
                numbers = {claim.workflow_id, claim.token, str(int(claim.deadline)), claim.step}
                assert len(numbers) == 1, "one claim of several publications"
                seen.add(claim.token)
    finally:
        writer.kill()
        writer.join()
    assert len(seen) > 10


def _publish_for_ever(slots: ClaimSlots) -> None:
    number = 0
    slots.publish_head(0, ME, taken=0, cells=CLAIMS)
    while True:
        number += 1
        one = PublishedClaim(str(number), str(number), float(number), str(number))
        slots.publish_claim(0, number % CLAIMS, one)


def test_the_keepers_areas_say_beat_stop_and_lost_tokens() -> None:
    slots = ClaimSlots(2)
    assert slots.beat() == 0
    assert not slots.stop_requested()
    slots.write_beat(12.5)
    slots.request_stop()
    slots.write_beat(13.5)
    assert slots.beat() == 13.5
    assert slots.stop_requested()
    slots.flag_lost(0, ["a" * 32, "b" * 32])
    assert slots.lost(0) == {"a" * 32, "b" * 32}
    assert slots.lost(1) == set()
    slots.flag_lost(0, [])
    assert slots.lost(0) == set()
