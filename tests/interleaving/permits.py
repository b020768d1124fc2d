"""Judges each change of a resource by what it was before and who wrote it (design 2.5).

Pure: a resource's document, the command that wrote it and what is known of its claims in, sentences
out. Guarantees that it keeps books of its own about starts and grants, so that an engine that
forgets to note one is found. Leaves what holds of instances to `changes`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kernel import StepStatus, WorkflowInstance
from kernel.protocol.resources import rate_window
from tests.interleaving.passing import LONG
from tests.interleaving.scripts import resource
from tests.interleaving.wire import Command

Row = Mapping[str, Any]
#: Whose permit: workflow, step (None: the workflow itself), token of the claim.
Owner = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class Deed:
    """A command on a resource: who sent it, and what was known of claims when it arrived.

    `owner_of` names who took a claim; `lives` tells whether that claim is still in force.
    """

    writer: str
    command: Command
    owner_of: Callable[[str], str | None]
    lives: Callable[[str, str], bool]


@dataclass
class Ledger:
    """The resources of one run from reading to reading."""

    run: str
    needs: Mapping[str | None, str]
    last: dict[str, Row] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _starts: dict[str, list[datetime]] = field(default_factory=dict)
    _granted: set[tuple[str, Owner]] = field(default_factory=set)

    @property
    def names(self) -> list[str]:
        """The resources' names."""
        letters = sorted(set("".join(self.needs.values())))
        return [resource(self.run, letter) for letter in letters]

    def skip(self, row: Row) -> None:
        """Take in a reading without judging it: time has passed, or nobody was watched yet."""
        name = row["_id"]
        self.last[name] = row
        self._starts.setdefault(name, list(row["starts"]))
        self._granted |= {(name, owner) for owner in _holders(row)}

    def let_pass(self) -> None:
        """Move the books of starts back, as the stored ones were."""
        for starts in self._starts.values():
            starts[:] = [at - LONG for at in starts]

    def see(self, row: Row, deed: Deed) -> list[str]:
        """Take in a resource after a command; return what is wrong with it."""
        name = row["_id"]
        before, self.last[name] = self.last.get(name), row
        at = datetime.now(UTC)
        found = [
            *self._of_gone(name, before, row, at, deed),
            *self._of_grants(name, before, row, at, deed),
            *_of_reserved(before, row, at),
            *_of_renewed(before, row, deed),
        ]
        if before is not None and row["refused"] > before["refused"]:
            self.counts["refused"] += row["refused"] - before["refused"]
        return [f"{deed.writer}: {name}: {sentence}" for sentence in found]

    def begun(self, before: WorkflowInstance | None, now: WorkflowInstance) -> Iterator[str]:
        """Yield what is wrong with steps that began: each needs a permit of all its resources."""
        if before is None or now.claim_token is None:
            return
        was_live = before.claim_token != now.claim_token or before.claimable_time > _now()
        for name, step in now.steps.items():
            begins = step.status is StepStatus.RUNNING and step.seq != before.steps[name].seq
            if not begins or not was_live:
                continue
            for step_name in (name, None):
                owner = (now.workflow_id, step_name, now.claim_token)
                for letter in self.needs.get(step_name, ""):
                    if (resource(self.run, letter), owner) not in self._granted:
                        yield f"{name} began without a permit of {letter}"

    def lost(self, holds: Callable[[str, str], bool]) -> list[tuple[str, Owner]]:
        """Return permits in force of whom no instance says that it is held."""
        at = datetime.now(UTC)
        return [
            (name, owner)
            for name, row in self.last.items()
            for owner in _living(row, at)
            if not holds(owner[0], owner[2])
        ]

    def at_end(self) -> Iterator[str]:
        """Yield what is left where nobody holds and nobody waits any more."""
        at = datetime.now(UTC)
        for name, row in self.last.items():
            yield from (f"{name}: a permit is left of {owner}" for owner in _living(row, at))
            if row["line"] or row["queued"]:
                yield f"{name}: the line says {row['line']}, {row['queued']} and nobody waits"

    def _of_gone(
        self, name: str, before: Row | None, now: Row, at: datetime, deed: Deed
    ) -> Iterator[str]:
        gone = set(_living(before, at)) - set(_holders(now))
        assert before is not None or not gone
        for owner in gone:
            workflow_id, _, token = owner
            since = _holders(before)[owner]["since"]
            was_given_back = before is not None and since in before["starts"]
            if was_given_back and since not in now["starts"] and since in self._starts[name]:
                self._starts[name].remove(since)
            if not deed.command.names(token):
                yield f"the permit of {owner} went and nobody named its claim"
            taker = deed.owner_of(token)
            if taker is None or taker == deed.writer:
                self._granted.discard((name, owner))
            elif deed.lives(workflow_id, token) and "free" not in deed.writer:
                yield f"I4 the permit of {owner} was taken from a living claim of {taker}"

    def _of_grants(
        self, name: str, before: Row | None, now: Row, at: datetime, deed: Deed
    ) -> Iterator[str]:
        gained = set(_living(now, at)) - set(_living(before, at))
        if not gained:
            return
        most, _ = _limits(now, at)
        held, kept = len(_living(now, at)), len(_kept(now, at))
        if most is not None and held + kept > most:
            yield f"{held} hold and {kept} places are kept, of {most}"
        in_line = bool(before and before["line"])
        for owner in gained - set(_holders(before)):
            since = _holders(now)[owner]["since"]
            self._granted.add((name, owner))
            self._starts.setdefault(name, []).append(since)
            self.counts["granted"] += 1
            if not _is_open(now, at):
                yield f"{owner} was granted a permit while it was closed"
            # Passed on to one that stands first in it, under the token of a claim to come.
            is_passed = deed.owner_of(owner[2]) is None
            self.counts["passed on"] += is_passed
            # Or a place was kept for it by the same update, which names it for that as well.
            is_kept = owner[0] in _kept(before, at) or deed.command.times(owner[0]) > 1
            if in_line and not is_passed and not is_kept:
                places = _kept(before, at)
                yield f"{owner} was granted a permit past the line, with places for {places}"
            yield from self._of_rate(name, now, since, at)

    def _of_rate(self, name: str, now: Row, since: datetime, at: datetime) -> Iterator[str]:
        rate = _limits(now, at)[1]
        if rate is None:
            return
        count, window = rate_window(rate)
        recent = [start for start in self._starts[name] if start >= since - window]
        if len(recent) > count:
            yield f"{len(recent)} started within {window}, of {count}"


def _of_reserved(before: Row | None, now: Row, at: datetime) -> Iterator[str]:
    gained = set(_kept(now, at)) - set(_kept(before, at))
    if not gained:
        return
    most, rate = _limits(now, at)
    held, kept = len(_living(now, at)), len(_kept(now, at))
    if most is not None and held + kept > most:
        yield f"a place was kept with {held} that hold and {kept} places kept, of {most}"
    if rate is not None and kept > rate_window(rate)[0]:
        yield f"{kept} places are kept of a rate of {rate}"
    if not _is_open(now, at):
        yield "a place was kept while it was closed"


def _of_renewed(before: Row | None, now: Row, deed: Deed) -> Iterator[str]:
    known = _holders(before)
    for owner, held in _holders(now).items():
        longer = owner in known and held["expires"] > known[owner]["expires"]
        if longer and not deed.command.names(owner[2]):
            yield f"the permit of {owner} was renewed and nobody named its claim"


def _holders(row: Row | None) -> dict[Owner, Row]:
    return {
        (held["owner"]["workflow_id"], held["owner"]["step"], held["owner"]["token"]): held
        for held in (row["holders"] if row is not None else ())
    }


def _living(row: Row | None, at: datetime) -> list[Owner]:
    return [owner for owner, held in _holders(row).items() if held["expires"] > at]


def _kept(row: Row | None, at: datetime) -> list[str]:
    kept = row["reservations"] if row is not None else ()
    return [one["workflow_id"] for one in kept if one["expires"] > at]


def _limits(row: Row, at: datetime) -> tuple[int | None, float | None]:
    """Return the limits in force: those of an override only until it is over."""
    override = row.get("override") or {}
    is_over = "until" in override and override["until"] <= at
    source = override if is_over else row
    return source.get("max_concurrency"), source.get("max_starts_per_second")


def _is_open(row: Row, at: datetime) -> bool:
    closed_until = row.get("cooldown_until")
    return not row["paused"] and (closed_until is None or closed_until <= at)


def _now() -> datetime:
    return datetime.now(UTC)
