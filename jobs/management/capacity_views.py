"""What ``manage.py capacity`` shows of a resource, as tables for people.

Guarantees: everything shown is a stored fact; what is not limited is said so. Leaves to others:
reading it (``kernel.capacity``) and layout (``jobs.management.terminal``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from jobs.management.terminal import clean, duration, table
from kernel import ResourceStatus

#: Lines of a list inside one resource's sheet.
LINES_SHOWN = 20


def listing(resources: Sequence[ResourceStatus], *, colour: bool) -> str:
    """One line a resource."""
    rows = [
        [
            one.resource,
            state(one),
            f"{one.used}/{limit(one.max_concurrency)}",
            limit(one.max_starts_per_second),
            one.reserved,
            one.waiting,
            one.granted,
            one.refused,
        ]
        for one in resources
    ]
    headers = ["RESOURCE", "STATE", "USED", "STARTS/S", "RESERVED", "WAITING", "GRANTED", "REFUSED"]
    return table(headers, rows, colour=colour)


def sheet(one: ResourceStatus, *, colour: bool) -> str:
    """Everything about one resource: header, holders, line, history."""
    parts = [_header(one, colour=colour)]
    if one.holders:
        parts.append(_holders(one, colour=colour))
    if one.waiters:
        parts.append(_line(one, colour=colour))
    if one.history:
        parts.append(_history(one, colour=colour))
    return "\n\n".join(parts)


def limit(value: float | None) -> str:
    """Write a limit the way people say it."""
    return f"{value:g}" if value else "unlimited"


def state(one: ResourceStatus) -> str:
    """Say in a word or two whether work can start, the strongest reason first."""
    if one.paused:
        return "paused"
    if one.cooldown_until is not None and one.cooldown_until > one.now:
        return f"cooldown {_until(one.cooldown_until, one.now)}"
    if one.max_concurrency and one.used + one.reserved >= one.max_concurrency:
        return "at capacity"
    if one.next_start_at is not None and one.next_start_at > one.now:
        return "at its rate"
    return "open"


def _header(one: ResourceStatus, *, colour: bool) -> str:
    rows: list[list[object]] = [
        ["resource", one.resource],
        ["state", state(one)],
        ["max concurrency", limit(one.max_concurrency)],
        ["starts a second", limit(one.max_starts_per_second)],
        ["in use", one.used],
        ["reserved", one.reserved],
        ["waiting", one.waiting],
        ["granted", one.granted],
        ["refused", one.refused],
        ["revision", one.revision],
    ]
    if one.override_until is not None:
        rows.append(["override ends in", _until(one.override_until, one.now)])
    if one.next_start_at is not None and one.next_start_at > one.now:
        rows.append(["next start in", _until(one.next_start_at, one.now)])
    return table(["", ""], rows, colour=colour).lstrip("\n")


def _holders(one: ResourceStatus, *, colour: bool) -> str:
    rows = [
        [
            holder.workflow_id,
            holder.step or "(whole claim)",
            _ago(holder.since, one.now),
            _until(holder.expires, one.now),
        ]
        for holder in one.holders[:LINES_SHOWN]
    ]
    shown = table(["HOLDER", "STEP", "SINCE", "LEASE ENDS IN"], rows, colour=colour)
    return shown + _more(len(one.holders))


def _line(one: ResourceStatus, *, colour: bool) -> str:
    rows = [
        [
            waiter.position,
            waiter.workflow_id,
            waiter.step or "(whole claim)",
            f"P{int(waiter.priority)}",
            _ago(waiter.since, one.now),
        ]
        for waiter in one.waiters[:LINES_SHOWN]
    ]
    shown = table(["NEXT", "WAITER", "STEP", "LANE", "WAITS FOR"], rows, colour=colour)
    return shown + _more(one.waiting, of=len(rows))


def _history(one: ResourceStatus, *, colour: bool) -> str:
    rows = [
        [entry.at, entry.by, _change(entry.change), entry.reason]
        for entry in one.history[: -LINES_SHOWN - 1 : -1]
    ]
    return table(["CHANGED", "BY", "CHANGE", "REASON"], rows, colour=colour)


def _change(change: Mapping[str, object]) -> str:
    return ", ".join(_one_change(name, value) for name, value in change.items())


def _one_change(name: str, value: object) -> str:
    if name == "paused":
        return "paused" if value else "resumed"
    if value is None:
        return f"{name} {'unlimited' if name.startswith('max_') else 'over'}"
    return f"{name} {clean(value)}"


def _more(count: int, *, of: int = LINES_SHOWN) -> str:
    return f"\n… and {count - of} more" if count > of else ""


def _ago(then: datetime, now: datetime) -> str:
    return duration(max(0, round((now - then).total_seconds() * 1000)))


def _until(then: datetime, now: datetime) -> str:
    return duration(max(0, round((then - now).total_seconds() * 1000)))
