"""A signal: a door bell, not a letter. It carries identity only (design 4)."""

from __future__ import annotations

from datetime import datetime

from kernel.model.step import Fact


class Signal(Fact):
    """One stored fact that something changed for one waiting workflow."""

    signal_id: str
    workflow_id: str
    signal_type: str
    wait_key: str
    generation: int = 0
    status: str = "pending"
    created_at: datetime | None = None
