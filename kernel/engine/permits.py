"""The permits of one claim: taken before a step begins, given back on every way out (design 2.5).

Guarantees that a step holds all the permits it names or none; that whoever cannot be asked grants
nothing, nor does a resource this version cannot read; that what could not be given back is tried
again until the claim ends, after which it runs out. Leaves to others: the rules
(`kernel.protocol.resources`), renewing (with the claim, permit first), and to whom a freed place
goes (`kernel.engine.handing_on`).

Several resources are looked at first and then acquired in the order of their names, those that look
closed before the others: nobody holds one while waiting for another, so nobody waits in a circle.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kernel.context import ActivityCapacity
from kernel.definition import Definition, RetryPolicy
from kernel.definition.resources import check_resource
from kernel.engine.claims import HeldClaim
from kernel.engine.handing_on import HandingOn
from kernel.engine.invoke import failure
from kernel.errors import StoreUnavailable, Unreadable
from kernel.protocol import spans, turns
from kernel.protocol.outcomes import Failed, Outcome
from kernel.protocol.resources import PermitOwner, Refusal, ResourceState, refusal
from kernel.store import CapacityStore, PermitGroups, Waiters

log: Final = logging.getLogger("baton.capacity")

#: Gives a permit back; answers with the claim the slot goes on with, if with one.
ToNext = Callable[[str, PermitOwner], HeldClaim | None]
#: As a step: the workflow itself.
WORKFLOW: Final = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitDesk:
    """What taking permits shares in one process."""

    store: CapacityStore
    groups: PermitGroups
    waiters: Waiters
    handing_on: HandingOn


class ClaimPermits:
    """The permits one claim holds, by step; None is the workflow itself. Thread-safe."""

    def __init__(self, desk: PermitDesk, held: HeldClaim, definition: Definition) -> None:
        self._desk = desk
        self._held = held
        self._definition = definition
        self._lock = threading.Lock()
        self._taken: dict[str | None, set[str]] = {
            step: {name} for step, name in held.permits.items()
        }
        #: Steps whose resources could not be named; None: the workflow's could not.
        self._unnamed: dict[str | None, Outcome] = {}

    def failure_of(self, step: str) -> Outcome | None:
        """Return how a step fails whose resources have no usable names, if so."""
        return self._unnamed.get(step) or self._unnamed.get(WORKFLOW)

    def holds_any(self, step: str) -> bool:
        """Tell whether a step has permits to give back."""
        return bool(self._of(step))

    def has_room(self, step: str) -> bool:
        """Tell whether giving a step's permits back asks nobody now."""
        return all(self._desk.handing_on.has_room(name) for name in self._of(step))

    def take_for_workflow(self) -> Refusal | None:
        """Take the workflow's own permits unless they are held; None means that it may go on."""
        if self._definition.workflow_resources is None or WORKFLOW in self._taken:
            return None
        return self._take(WORKFLOW, self._names(WORKFLOW), {})

    def take(self, steps: Sequence[str], *, leaving: str | None = None) -> dict[str, Refusal]:
        """Take the permits of steps that are about to begin; return those that were refused.

        `leaving` is a step that has come home: what both name passes on in one update.
        """
        refused: dict[str, Refusal] = {}
        passing = dict.fromkeys(self._of(leaving), leaving) if leaving is not None else {}
        for step in steps:
            names = self._names(step)
            if names and (why := self._take(step, names, passing)) is not None:
                refused[step] = why
        return refused

    def give_back(self, step: str | None, *, unused: bool = False) -> None:
        """Give a step's permits back and hand them on. On repeat: nothing.

        What cannot be given back now is tried again by `give_back_all`.
        """
        for name in sorted(self._of(step)):
            try:
                self._desk.handing_on.give_back(name, self._owner(step), unused=unused)
            except (StoreUnavailable, Unreadable) as exc:
                log.warning("permit of %s not given back yet: %s", name, exc)
                continue
            with self._lock:
                self._taken[step].discard(name)

    def pass_on(self, step: str, to_next: ToNext) -> None:
        """Give a step's permits back at the end of its claim, which may be followed by another.

        That is so where one permit is all the claim holds. On repeat: nothing.
        """
        names = self._of(step)
        if len(names) != 1 or self._definition.workflow_resources is not None:
            self.give_back(step)
            return
        [name] = names
        try:
            self._held.following = to_next(name, self._owner(step))
        except (StoreUnavailable, Unreadable) as exc:
            log.warning("permit of %s not given back yet: %s", name, exc)
            return
        with self._lock:
            self._taken[step].discard(name)

    def give_back_all(self) -> None:
        """Give back whatever this claim still holds, at its end. On repeat: nothing."""
        with self._lock:
            steps = list(self._taken)
        for step in steps:
            self.give_back(step)

    def look_again(self, refused: Mapping[str, Refusal] | Refusal) -> None:
        """After a deferral is stored: a hand-on may have come between refusal and deferral."""
        each = [refused] if isinstance(refused, Refusal) else list(refused.values())
        names = {name for why in each for name in why.resources}
        try:
            self._desk.handing_on.look_after_putting_off(names)
        except StoreUnavailable as exc:
            log.info("tick looks instead: %s", exc)

    def for_activity(self, step: str) -> ActivityCapacity:
        """Return what a step's activity may do to resources."""
        by = f"{self._held.live.workflow_id}/{step}"

        def cool_down(resource: str, for_ms: int) -> None:
            name = check_resource(resource)
            self._desk.store.cool_down(name, for_ms=for_ms, by=by, reason="told so outside")

        return ActivityCapacity(cool_down)

    def _names(self, step: str | None) -> tuple[str, ...]:
        """Return the resources of a step; naming nothing usable fails the step, not the worker."""
        if step is not WORKFLOW and self._definition.steps[step].traffic_resource is None:
            return ()
        try:
            value = self._definition.plan.load_input(self._held.instance.input)
            if step is not WORKFLOW:
                return self._definition.steps[step].resources(value)
            return self._definition.named_for_workflow(value)
        except BaseException as exc:  # noqa: BLE001 - the callable is activity code
            self._unnamed[step] = _unnameable(exc)
            return ()

    def _take(
        self, step: str | None, names: tuple[str, ...], passing: Mapping[str, str]
    ) -> Refusal | None:
        with self._lock:
            self._taken.setdefault(step, set())
        try:
            ordered = self._looked_at(names) if len(names) > 1 else names
        except StoreUnavailable:
            ordered = names
        for name in ordered:
            try:
                state = self._ask(step, name, passing)
            except Unreadable as exc:
                log.error("nothing starts on %s: %s", name, exc)
                self.give_back(step, unused=True)
                return refusal([], names, unreadable=(name,))
            if state is not None and state.holds(self._owner(step)):
                continue
            self.give_back(step, unused=True)
            return refusal(
                [state] if state is not None else [],
                names,
                uncertain=() if state is not None else (name,),
            )
        return None

    def _looked_at(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Put those that look closed first, so that nothing has to be given back."""
        states, _ = self._desk.store.read_each(names)
        is_open = {name for name, state in states.items() if state.places()}
        return tuple(sorted(names, key=lambda name: (name in is_open, name)))

    def _ask(self, step: str | None, name: str, passing: Mapping[str, str]) -> ResourceState | None:
        """Ask for one permit, again after a lost answer; None means that nobody can tell."""
        owner = self._owner(step)
        leaving = self._owner(passing[name]) if name in passing else None
        if leaving is None and not self._is_in_line(step):
            closed = self._desk.handing_on.closed(name)
            if closed is not None and not closed.knows(owner.workflow_id):
                return closed
        with self._lock:
            self._taken[step].add(name)  # before the answer, which may be lost
        for _ in range(2):
            try:
                state = self._desk.groups.acquire(name, owner, leaving=leaving)
                if not state.holds(owner) and state.places() and self._is_first(step, name):
                    # Only the line refused, and nobody stands before us in it.
                    # Another step of ours may hold one.
                    self._desk.store.reserve(name, [owner.workflow_id], for_waiters=False)
                    state = self._desk.groups.acquire(name, owner)
            except StoreUnavailable as exc:
                log.warning("asking for a permit of %s: %s", name, exc)
                self._held.live.working()
                continue
            except Unreadable:
                with self._lock:
                    self._taken[step].discard(name)
                raise
            self._desk.handing_on.seen(state)
            if not state.holds(owner):
                with self._lock:
                    self._taken[step].discard(name)
            return state
        return None

    def _is_first(self, step: str | None, name: str) -> bool:
        instance = self._held.instance
        place = turns.place_now(instance, step, self._held.now)
        return not self._desk.waiters.is_anybody_ahead(
            name, priority=int(instance.priority), since=place
        )

    def _is_in_line(self, step: str | None) -> bool:
        instance = self._held.instance
        if step is WORKFLOW:
            return instance.queued_since is not None
        return spans.is_in_line(instance.steps[step])

    def _of(self, step: str | None) -> set[str]:
        with self._lock:
            return set(self._taken.get(step, ()))

    def _owner(self, step: str | None) -> PermitOwner:
        return PermitOwner(self._held.live.workflow_id, step, self._held.live.token)


def _unnameable(exc: BaseException) -> Outcome:
    """A callable that raises or names nothing usable is wrong the next time as well."""
    said = failure(exc, RetryPolicy())
    return replace(said, retryable=False) if isinstance(said, Failed) else said
