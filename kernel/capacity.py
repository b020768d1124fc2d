"""Capacity of resources outside: limits that may change while work runs (design 2.5).

A resource is whatever steps name as `traffic_resource`, or a definition as `workflow_resources`; it
needs no registration, and without limits it is unlimited, but counted. Two limits: how many calls
are in flight at once, and how many may start in a second. Every change holds from the next permit
on: raising lets waiters go on at once, lowering interrupts nobody.

Guarantees that a change is one guarded write with its author and reason in the history. Leaves to
others: granting (`kernel.store.capacity`), waiting (`kernel.protocol.deferring`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final

from pydantic import ValidationError

from kernel import limits
from kernel.definition.resources import check_resource, is_resource
from kernel.directives import Seconds, as_seconds
from kernel.engine.permits import PermitDesk
from kernel.errors import InvalidValue, KernelError, Unreadable
from kernel.model import Holder, LimitChange, Priority, ResourceStatus, Waiter
from kernel.protocol.outcomes import encodable
from kernel.protocol.resources import ResourceState

log: Final = logging.getLogger("baton.capacity")


class Unchanged(Enum):
    """The default of a limit: leave it as it is."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


class Capacity:
    """Limits, pauses and cooldowns of resources. Every method may raise StoreUnavailable.

    With `if_revision`, a change is refused unless the resource is still as the caller saw it.
    """

    def __init__(self, desk: PermitDesk) -> None:
        self._store = desk.store
        self._waiters = desk.waiters
        self._handing_on = desk.handing_on

    def set_limit(
        self,
        resource: str,
        *,
        max_concurrency: int | Unchanged | None = UNCHANGED,
        max_starts_per_second: float | Unchanged | None = UNCHANGED,
        reason: str = "",
        by: str = "",
        expires_in: Seconds | None = None,
        if_revision: int | None = None,
    ) -> ResourceStatus:
        """Limit a resource; what is not named stays, None or 0 is unlimited.

        With `expires_in` seconds it is an override: afterwards what held before any override of the
        limits it names holds again. Without, it is for good and ends their overrides. One of the
        other limit goes on to its own end in both cases.
        On repeat: the same limits, one more entry in the history.

        Raises:
            InvalidValue: no resource name, or no limit (negative, NaN, infinite, too large).
            RevisionConflict: it was changed since `if_revision`; nothing was written.
        """
        check_resource(resource)
        values: dict[str, object] = {}
        if max_concurrency is not UNCHANGED:
            values["max_concurrency"] = _concurrency(max_concurrency)
        if max_starts_per_second is not UNCHANGED:
            values["max_starts_per_second"] = _rate(max_starts_per_second)
        if not values:
            raise InvalidValue(
                "name max_concurrency or max_starts_per_second (None: unlimited)", what="limit"
            )
        expires_ms = None if expires_in is None else _milliseconds(expires_in, "expires_in")
        if expires_ms == 0:
            raise InvalidValue("an override lasts for more than 0 seconds", what="expires_in")
        return self._changed(
            resource,
            lambda: self._store.set_limits(
                resource,
                values,
                by=_text(by, "by"),
                reason=_text(reason, "reason"),
                expires_ms=expires_ms,
                if_revision=_revision(if_revision),
            ),
        )

    def pause(
        self, resource: str, *, reason: str = "", by: str = "", if_revision: int | None = None
    ) -> ResourceStatus:
        """Let nothing start until `resume`; what runs goes on. On repeat: it stays paused.

        Raises: InvalidValue, RevisionConflict, as `set_limit`.
        """
        return self._pause(resource, True, reason, by, if_revision)

    def resume(
        self, resource: str, *, reason: str = "", by: str = "", if_revision: int | None = None
    ) -> ResourceStatus:
        """End a pause; waiters go on at once. On repeat: it stays open.

        Raises: InvalidValue, RevisionConflict, as `set_limit`.
        """
        return self._pause(resource, False, reason, by, if_revision)

    def cooldown(
        self,
        resource: str,
        *,
        seconds: Seconds,
        reason: str = "",
        by: str = "",
        if_revision: int | None = None,
    ) -> ResourceStatus:
        """Let nothing start for a while; never shortens a longer cooldown, 0 ends it.

        Raises: InvalidValue, RevisionConflict, as `set_limit`.
        """
        check_resource(resource)
        for_ms = _milliseconds(seconds, "cooldown")
        return self._changed(
            resource,
            lambda: self._store.set_cooldown(
                resource,
                for_ms=for_ms,
                by=_text(by, "by"),
                reason=_text(reason, "reason"),
                if_revision=_revision(if_revision),
            ),
        )

    def status(self, resource: str) -> ResourceStatus:
        """Show limits, use, line and history; a resource nobody named yet is at revision 0.

        Raises: InvalidValue: no resource name. Unreadable: as for every call here, this version
        does not know what stands in it.
        """
        state = self._store.read(check_resource(resource), with_history=True)
        return self._shown(state)

    def statuses(self, resources: Iterable[str]) -> list[ResourceStatus]:
        """Show several, as `status`; one that this version cannot read is logged and left out.

        Raises: InvalidValue: no resource name.
        """
        shown = []
        for resource in resources:
            try:
                shown.append(self.status(resource))
            except Unreadable as exc:
                log.error("passed over: %s", exc)
        return shown

    def resources(self) -> list[str]:
        """Return every known resource, sorted, at most 10,000; what nobody may name is left out."""
        return [
            each for each in self._store.names(limit=limits.RESOURCES_LISTED) if is_resource(each)
        ]

    def _pause(
        self, resource: str, paused: bool, reason: str, by: str, if_revision: int | None
    ) -> ResourceStatus:
        check_resource(resource)
        return self._changed(
            resource,
            lambda: self._store.set_paused(
                resource,
                paused,
                by=_text(by, "by"),
                reason=_text(reason, "reason"),
                if_revision=_revision(if_revision),
            ),
        )

    def _changed(self, resource: str, change: Callable[[], None]) -> ResourceStatus:
        change()
        try:
            self._handing_on.hand_on(resource)
        except KernelError as exc:
            log.info("tick hands %s on instead: %s", resource, exc)
        return self.status(resource)

    def _shown(self, state: ResourceState) -> ResourceStatus:
        line = self._waiters.shown(state.name, limit=limits.CAPACITY_SHOWN)
        waiting = len(line)
        if waiting == limits.CAPACITY_SHOWN:
            waiting = self._waiters.count(state.name)
        return ResourceStatus(
            resource=state.name,
            revision=state.revision,
            max_concurrency=state.max_concurrency,
            max_starts_per_second=state.max_starts_per_second,
            paused=state.paused,
            cooldown_until=_ahead(state),
            override_until=state.override_until,
            used=len(state.holders),
            holders=tuple(
                Holder(
                    workflow_id=held.owner.workflow_id,
                    step=held.owner.step,
                    since=held.since,
                    expires=held.expires,
                )
                for held in state.holders[: limits.CAPACITY_SHOWN]
            ),
            reserved=len(state.reserved),
            waiting=waiting,
            waiters=tuple(
                Waiter(
                    workflow_id=each.workflow_id,
                    step=each.step,
                    priority=Priority(each.priority),
                    since=each.since,
                    position=place,
                )
                for place, each in enumerate(line, start=1)
            ),
            granted=state.granted,
            refused=state.refused,
            next_start_at=state.next_start_at(),
            history=tuple(_legible(state)),
            now=state.now,
        )


def _legible(state: ResourceState) -> Iterator[LimitChange]:
    """Yield the changes this version can read; people's words decide nothing."""
    for entry in state.history:
        try:
            yield LimitChange.model_validate(entry)
        except ValidationError as exc:
            log.error("passed over a change of %s: %s", state.name, exc.errors()[0]["msg"])


def _ahead(state: ResourceState) -> Any:
    until = state.cooldown_until
    return until if until is not None and until > state.now else None


def _concurrency(value: object) -> int | None:
    is_count = value is None or (isinstance(value, int) and not isinstance(value, bool))
    if not is_count or not 0 <= (value or 0) <= limits.CONCURRENCY_MAX:  # type: ignore[operator]
        raise InvalidValue(
            f"{value!r} is no limit: give a whole number from 1 to {limits.CONCURRENCY_MAX},"
            " or None (or 0) for unlimited",
            what="max_concurrency",
        )
    return value or None  # type: ignore[return-value]


def _rate(value: object) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and value == 0:
        return None
    least, most = limits.STARTS_PER_SECOND_MIN, limits.STARTS_PER_SECOND_MAX
    if not is_number or not least <= value <= most:  # type: ignore[operator]
        raise InvalidValue(
            f"{value!r} is no rate: give a number from {least} to {most} starts a second,"
            " or None (or 0) for unlimited",
            what="max_starts_per_second",
        )
    assert math.isfinite(value)  # type: ignore[arg-type]
    return float(value)  # type: ignore[arg-type]


def _milliseconds(seconds: Seconds, what: str) -> int:
    return math.ceil(1000 * as_seconds(seconds, what=what))


def _revision(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if value is None or (is_number and 0 <= value < 2**63):  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise InvalidValue("give the revision of a status, from 0", what="if_revision")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"give text, not {type(value).__name__}", what=what)
    return encodable(value, limit_bytes=limits.ERROR_MESSAGE_BYTES)
