"""What one bounded turn of a reconcile part answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """`found` is what had been lost; `is_full` says that the bound ended the turn, not the work."""

    found: int
    is_full: bool
