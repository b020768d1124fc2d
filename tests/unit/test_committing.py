"""A commit without an answer is settled by looks, and never counts as lost before they know."""

from datetime import datetime
from typing import Any, cast

from kernel.engine.claims import HeldClaim, LiveClaim
from kernel.engine.committing import commit_held
from kernel.errors import StoreUnavailable
from kernel.protocol import beginning
from kernel.protocol.apply import apply_changes
from kernel.protocol.commit import Commit
from kernel.store.port import Instances, Stored
from tests.unit.instances import NOW, document


class Behind:
    """A store that applies a commit without saying so, and whose majority learns of it late."""

    def __init__(self, before: Stored, looks: int) -> None:
        self.known = before
        self.after = before
        self.looks = looks
        self.sent = 0

    def commit_grouped(self, commit: Commit) -> bool:
        after = self.known.document
        for stage in commit.stages:
            after = apply_changes(after, stage, NOW)
        self.after = Stored(document=after, now=NOW)
        raise StoreUnavailable("its answer was lost")

    def commit(self, _: Commit) -> bool:
        self.sent += 1
        return False  # the guard names the seq before the first one

    def read(self, _: str, *, majority: bool = False) -> Stored:
        assert majority
        self.looks -= 1
        return self.known if self.looks >= 0 else self.after


def held_of(now: datetime = NOW) -> tuple[HeldClaim, Stored]:
    made: Any = document({"a": "pending"}, claimable_time=now)
    stored = Stored(document=made, now=now)
    return HeldClaim(stored, LiveClaim(stored.instance.workflow_id, "mine")), stored


def test_an_applied_commit_the_majority_does_not_know_yet_is_not_taken_for_lost() -> None:
    held, stored = held_of()
    store = Behind(stored, looks=2)
    commit = beginning.begin(held.instance, ("a",))
    assert commit_held(cast(Instances, store), held, commit)
    assert store.sent == 1
    assert not held.live.lost.is_set()
    assert not held.ended
    assert held.instance.steps["a"].attempt == 1
