"""Hands freed places of a resource to those next in line (design 2.5).

| killed between | facts left | who completes it |
|---|---|---|
| release / reserve | a free place, the line set | tick, within a second |
| reserve / hand on | a reservation for one that is not due | it runs out in 5 s, then tick |
| hand on / push | due, in no lane | the lanes' own repair: polling, reconcile |
| put off / look again | one in line, maybe beside a free place | tick, or reconcile |

A waiter that needs several resources is handed on to only when all of them have a place for it; how
it comes to that is told in `kernel.engine.gathering`, who is chosen in `kernel.engine.choosing`.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from kernel import limits
from kernel.engine.choosing import Choosing
from kernel.engine.gathering import Gathering
from kernel.engine.hinting import HintWriter, as_ms
from kernel.engine.pacing import Pacer
from kernel.engine.sightings import Sightings
from kernel.errors import HintsUnavailable, StoreUnavailable, Unreadable
from kernel.hints import Candidate
from kernel.protocol import queueing
from kernel.protocol.resources import Held, PermitOwner, ResourceState
from kernel.store import CapacityStore, Leaving, PermitGroups, Waiters
from kernel.store.grouping import Grouping
from kernel.store.standing import Standing

log: Final = logging.getLogger("baton.capacity")

#: Waiters looked at beyond the free places, for those whose other resources are full.
_LOOK_FURTHER: Final = 20
#: Waiters a release may choose from: others that release at the same moment choose first.
_FOLLOWING: Final = 8
#: How long a permit may be given back late where nobody needs it, seconds.
_POSTPONED_SECONDS: Final = 0.1
#: How much later a resource is looked at that need not be looked at once, seconds.
_SOON_SECONDS: Final = 0.25


class HandingOn:
    """Gives free places to waiters; safe to repeat, and for many processes at once."""

    def __init__(
        self,
        store: CapacityStore,
        groups: PermitGroups,
        waiters: Waiters,
        hints: HintWriter,
    ) -> None:
        self._store = store
        self._groups = groups
        self._waiters = waiters
        self._hints = hints
        self._choosing = Choosing(store, Gathering(store, waiters))
        self._pacer = Pacer(self._look)
        groups.when_waited_for = lambda resource: self._pacer.arm(resource, 0)
        self._sightings = Sightings()
        self._lock = threading.Lock()
        self._looks: Grouping[tuple[str, ...], list[ResourceState]] = Grouping(
            self._look_together, most=limits.GROUP_COMMITS
        )
        #: Resources to be looked at soon, and whether somebody has joined their line.
        self._soon: dict[str, bool] = {}
        #: Where the last look at all lines stopped, of more than one look takes.
        self._looked_up_to: str | None = None
        #: Permits that may have been granted to claims that were never taken.
        self._strays: dict[str, set[PermitOwner]] = defaultdict(set)

    def close(self) -> None:
        """End what runs in the background. On repeat: nothing."""
        self._pacer.close()

    def settle(self) -> None:
        """Give back what was postponed; whoever has nothing left to run calls it."""
        for resource in self._groups.postponed():
            try:
                self._flush(resource)
            except (StoreUnavailable, Unreadable) as exc:
                log.warning("permits of %s not given back yet: %s", resource, exc)

    def _look(self, resource: str) -> None:
        """Do what has come due for a resource: one update, or one look, serves for all of it."""
        with self._lock:
            is_joined = self._soon.pop(resource, None)
        state = self._flush(resource, refusals=bool(is_joined))
        if is_joined:
            state = state or self._store.read(resource)
            if not state.line:
                self._store.set_line(resource)
        if is_joined is not None or self._sightings.has_line(resource):
            self.hand_on(resource, state)

    def _flush(self, resource: str, *, refusals: bool = False) -> ResourceState | None:
        if (state := self._groups.flush(resource, refusals=refusals)) is not None:
            self.seen(state)
        return state

    def seen(self, state: ResourceState) -> None:
        """Learn from any answer whether there is a line, and when its next start is due."""
        self._sightings.note(state)
        if state.line and (at := state.next_start_at()) is not None:
            self._pacer.arm(state.name, (at - state.now).total_seconds())

    def closed(self, resource: str) -> ResourceState | None:
        """Return a resource that had a line and no place a moment ago: who comes new is refused.

        Should it have opened since, the look after the deferral (`look_after_putting_off`) finds
        that out, as it does after any refusal.
        """
        if (state := self._sightings.full(resource)) is None:
            return None
        return replace(state, queued=state.queued + self._groups.refuse(resource))

    def has_room(self, resource: str) -> bool:
        """Less than half full and nobody waits: what is given back travels with who asks next."""
        return self._sightings.has_room(resource)

    def give_back(
        self,
        resource: str,
        owner: PermitOwner,
        *,
        unused: bool = False,
        following: Sequence[Standing] | None = None,
    ) -> None:
        """Give a permit back and hand its place on: in one update, where a line is known.

        Where there is plenty of room it is given back a moment later, together with others.
        `following` are those next in line, where they were just read.

        Raises:
            StoreUnavailable: not known; try again.
        """
        if self.has_room(resource) and not unused:
            self._groups.release_later(resource, owner)
            self._pacer.arm(resource, _POSTPONED_SECONDS)
            return
        if following is None:
            following = self.following(resource)
        names = tuple(waiter.workflow_id for waiter in following)
        self._give_back_strays(resource)
        leaving = Leaving(owner=owner, unused=unused, then_reserve=names)
        state = self._groups.release(resource, leaving)
        self.seen(state)
        self._let_go([w for w in following if w.workflow_id in state.handed])
        if state.line and state.places():
            self.hand_on(resource, state)

    def pass_on(
        self, resource: str, owner: PermitOwner, offered: tuple[PermitOwner, ...]
    ) -> Held | None:
        """Give a permit back and grant one to the first of those offered that has no place yet.

        None: to nobody; what is free is handed on.

        Raises:
            StoreUnavailable: not known; giving it back once more settles it.
        """
        try:
            state = self._groups.release(resource, Leaving(owner=owner, then_pass=offered))
        except StoreUnavailable:
            with self._lock:
                self._strays[resource].update(offered)
            raise
        self.seen(state)
        given = next((held for held in state.holders if held.owner in offered), None)
        if given is None and state.line and state.places():
            self.hand_on(resource, state)
        return given

    def take_back(self, resource: str, owner: PermitOwner) -> None:
        """Give back, sooner or later, a permit whose claim was not taken."""
        try:
            self.give_back(resource, owner, unused=True)
        except (StoreUnavailable, Unreadable):
            with self._lock:
                self._strays[resource].add(owner)

    def hand_on(self, resource: str, state: ResourceState | None = None) -> int:
        """Hand every free place on; return how many waiters may go on.

        `state` is the resource as just read or written. A line that nobody stands in is cleared, if
        no refusal came since it was read.

        Raises:
            StoreUnavailable: whoever looks next does it again.
            Unreadable: this version does not know what stands in the resource.
        """
        if state is None:
            state = self._store.read(resource)
        self.seen(state)
        count, closed, kept = 0, frozenset[str](), frozenset[str]()
        while places := state.places():
            most = places + _LOOK_FURTHER
            standing = self._waiters.first(resource, limit=most, closed=closed, kept=kept)
            if not standing and not closed:
                # One that this version cannot read stands there all the same.
                if state.line and self._waiters.is_empty(resource):
                    self._store.clear_line(resource, state.line)
                break
            # One that has a place and is not due yet is being handed on to this very moment.
            free = [waiter for waiter in standing if waiter.workflow_id not in state.reserved]
            chosen = self._choosing.choose(state, free, places, gathers=not closed)
            if chosen.waiters:
                names = [each.workflow_id for each in chosen.waiters]
                state = self._store.reserve(resource, names)
                self.seen(state)
                let_go = [each for each in chosen.waiters if each.workflow_id in state.reserved]
                self._let_go(let_go)
                count += len(let_go)
                left = [each for each in chosen.waiters if each.workflow_id not in state.reserved]
                self._choosing.give_back(left, chosen)
            # Whoever looked there meanwhile found the places kept that were kept in vain.
            self._look_soon(chosen.places.given_back, is_joined=False)
            # They stand in the line of those now, where a place may have come free.
            self.look_again(chosen.moved_to)
            if len(standing) < most or chosen.closed <= closed:
                break
            closed, kept = closed | chosen.closed, kept | chosen.kept
        return count

    def hand_on_all(self, *, limit: int) -> int:
        """Hand on for resources somebody waits for, in turn; return how many waiters may go on."""
        states = self._store.in_line(limit=limit, after=self._looked_up_to)
        self._looked_up_to = states[-1].name if len(states) == limit else None
        return sum(self._apart(state) for state in states)

    def _apart(self, state: ResourceState) -> int:
        """Hand on, whatever stands in the line of another resource."""
        try:
            return self.hand_on(state.name, state)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("nothing is handed on for %s", state.name)
            return 0

    def release_claims(self, tokens: Sequence[str]) -> int:
        """Give back whatever permits these ended claims left; return how many."""
        found = self._store.held_by(tokens)
        for resource, owners in found.items():
            try:
                self.hand_on(resource, self._store.release(resource, owners))
            except Unreadable as exc:
                log.error("permits of ended claims are left to their lease: %s", exc)
        return sum(map(len, found.values()))

    def look_after_putting_off(self, resources: Iterable[str]) -> None:
        """Look once more when somebody was put off: a place may have come free since the refusal.

        Whoever stands behind many is not the one it is for: a long line is looked at a moment
        later, for all that have joined it. A process that ends before leaves that to tick, or to
        reconcile where it is said that nobody waits.

        Raises:
            StoreUnavailable: tick looks instead.
        """
        names = set(resources)
        joined = {
            name
            for name in names
            if self._sightings.has_long_line(name, more=self._groups.unasked(name))
        }
        self._look_soon(joined, is_joined=True)
        self.look_again(sorted(names - joined))

    def _look_soon(self, resources: Iterable[str], *, is_joined: bool) -> None:
        for name in resources:
            with self._lock:
                self._soon[name] = is_joined or self._soon.get(name, False)
            self._pacer.arm(name, _SOON_SECONDS)

    def look_again(self, resources: Iterable[str]) -> None:
        """Hand on where there is a place, and say that somebody waits where nothing says so."""
        names = tuple(resources)
        for state in self._looks(names) if names else ():
            if not state.line:
                self._store.set_line(state.name)
            if state.places():
                self._apart(state)

    def _look_together(self, asked: Sequence[tuple[str, ...]]) -> list[list[ResourceState]]:
        """Read once for all who were put off together: after each of their deferrals.

        One that cannot be read is passed over.
        """
        named = sorted({name for names in asked for name in names})
        states, foreign = self._store.read_each(named)
        for exc in foreign.values():
            log.error("passed over: %s", exc)
        return [[states[name] for name in names if name in states] for names in asked]

    def following(self, resource: str, *, whole: bool = False) -> list[Standing]:
        """Return those next in line who need nothing else: a freed place may go to the first.

        Nobody, where this process knows of no line. `whole`: with their documents.
        """
        if not self._sightings.has_line(resource):
            return []
        look = self._waiters.first_whole if whole else self._waiters.first
        first = look(resource, limit=_FOLLOWING)
        return list(itertools.takewhile(lambda waiter: waiter.needs <= {resource}, first))

    def _give_back_strays(self, resource: str) -> None:
        """Give back what may have been granted by an update whose answer was lost."""
        with self._lock:
            strays = self._strays.pop(resource, None)
        if not strays:
            return
        try:
            self._store.release(resource, sorted(strays, key=lambda owner: owner.token))
        except StoreUnavailable:
            with self._lock:
                self._strays[resource].update(strays)
            raise

    def _let_go(self, waiters: Sequence[Standing]) -> None:
        if not waiters:
            return
        self._waiters.hand_on(
            [queueing.hand_on(w.workflow_id, w.revision, w.steps) for w in waiters]
        )
        by_queue: dict[str, list[Candidate]] = defaultdict(list)
        for waiter in waiters:
            # As old as its round: a kept place must not wait behind a backlog of newcomers.
            at_ms = as_ms(waiter.started)
            by_queue[waiter.queue].append(Candidate(waiter.workflow_id, waiter.priority, at_ms))
        for queue, candidates in by_queue.items():
            with suppress(HintsUnavailable):
                self._hints.hints.push_all(queue, candidates)
            self._hints.ring(queue)
