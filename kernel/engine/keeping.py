"""Who renews the claims of this process: its own heartbeat thread, or a keeper outside."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from kernel.engine.claims import LiveClaim


class ClaimKeeper(Protocol):
    """Renews claims while they are held, and flags those that are lost."""

    def keeping(self, claim: LiveClaim) -> AbstractContextManager[None]:
        """Have a claim renewed for as long as the block runs; inside such a block: nothing more."""

    def should_stop(self) -> bool:
        """Tell whether nothing new should be taken and held claims should be handed back."""

    def stop(self) -> None:
        """End what runs in the background. On repeat: nothing."""
