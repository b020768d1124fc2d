"""A capacity resource as people and programs see it (design 2.5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kernel.model.instance import Priority
from kernel.model.step import Fact


class Holder(Fact):
    """Who is in flight: a step of a workflow, or the workflow itself (`step` None)."""

    workflow_id: str
    step: str | None
    since: datetime
    expires: datetime


class Waiter(Fact):
    """Who waits for a permit; `position` counts from 1 over all lanes, best lane first."""

    workflow_id: str
    step: str | None
    priority: Priority
    since: datetime
    position: int


class LimitChange(Fact):
    """One change of limits: when, by whom, why, and each changed field with its new value."""

    at: datetime
    by: str
    reason: str
    change: dict[str, Any]


class ResourceStatus(Fact):
    """One resource at one moment of the database's clock (`now`).

    Limits are those in force; None is unlimited. `override_until` is when the last of them falls
    back to that before the override. `holders`, `waiters` and `history` are bounded (100, 100,
    newest 50), the counts are not. `granted` and `refused` count answers since the resource was
    first named. `next_start_at` is the earliest moment at which rate, cooldown and pause allow a
    start: None when that is now, or when only a person can tell (paused).
    """

    resource: str
    revision: int
    max_concurrency: int | None
    max_starts_per_second: float | None
    paused: bool
    cooldown_until: datetime | None
    override_until: datetime | None
    used: int
    holders: tuple[Holder, ...]
    reserved: int
    waiting: int
    waiters: tuple[Waiter, ...]
    granted: int
    refused: int
    next_start_at: datetime | None
    history: tuple[LimitChange, ...]
    now: datetime
