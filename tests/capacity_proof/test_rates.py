"""Starts a second, judged at the grant: no window of the database's clock has more than it may."""

import math

import pytest

from tests.capacity_proof.calls import most_in_flight, most_in_window
from tests.capacity_proof.deployment import Deployment
from tests.capacity_proof.sizes import STARTS

pytestmark = pytest.mark.timeout(600)


def test_no_window_has_more_starts_than_its_rate(shared: Deployment) -> None:
    """Two rates, and one together with a limit on what is in flight, all at the same time."""
    fast = shared.limited("fast", max_starts_per_second=2.0)
    slow = shared.limited("slow", max_starts_per_second=0.5)
    both = shared.limited("both", max_starts_per_second=2.0, max_concurrency=1)
    names = [
        *shared.crowd(fast, 2 * STARTS, ms=1, ask=True),
        *shared.crowd(slow, STARTS, ms=1, ask=True),
        *shared.crowd(both, STARTS, ms=700, ask=True),
    ]
    shared.all_ended(names, within=60 + 6 * STARTS)
    for resource, rate, count in (
        (fast, 2.0, 2 * STARTS),
        (slow, 0.5, STARTS),
        (both, 2.0, STARTS),
    ):
        calls = shared.provider.calls(resource)
        assert len(calls) == count
        granted = [call.granted for call in calls if call.granted is not None]
        assert len(granted) == count, "every call was made with a permit in the books"
        assert most_in_window(granted, rate) <= math.ceil(rate)
    assert most_in_flight(shared.provider.calls(both)) == 1
