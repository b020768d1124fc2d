"""One update in which permits go from those that leave to those that come (design 1.8, 2.5).

In this order: who leaves is out; each offer passes a permit on to the first in line it names;
places are kept for those next in line; then come those that ask by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel.protocol.resources import PermitOwner
from kernel.store import capacity_pipelines
from kernel.store.capacity_pipelines import Pipeline
from kernel.store.clock import StoreClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A permit given back; `unused`: together with its start.

    `then_reserve` are workflows its place may be kept for, `then_pass` owners of whom one may have
    it at once; of each, the first that has no place yet.
    """

    owner: PermitOwner
    unused: bool = False
    then_reserve: tuple[str, ...] = ()
    then_pass: tuple[PermitOwner, ...] = ()


def exchanged(
    leaving: Sequence[Leaving],
    wanted: Sequence[PermitOwner],
    clock: StoreClock,
    *,
    lease_ms: int,
    unasked: int = 0,
) -> Pipeline:
    """Return the update for everybody who leaves and everybody who asks.

    `unasked` is how many were refused on what was known of the resource; they are in the line.
    """
    unused = [each.owner for each in leaving if each.unused]
    used = [each.owner for each in leaving if not each.unused]
    offers = [each.then_pass for each in leaving if each.then_pass]
    following = list(dict.fromkeys(name for each in leaving for name in each.then_reserve))
    stages: Pipeline = capacity_pipelines.dropped(clock)
    if unused:
        stages += capacity_pipelines.released(unused, clock, unused=True)
    if used:
        stages += capacity_pipelines.released(used, clock)
    if offers:
        stages += capacity_pipelines.passed(offers, clock, lease_ms=lease_ms)
    if following:
        stages += capacity_pipelines.reserved(following, clock, most=len(used))
    if unasked:
        stages.append(capacity_pipelines.refused_before(unasked))
    if wanted:
        stages += capacity_pipelines.acquired(wanted, clock, lease_ms=lease_ms)
    return stages
