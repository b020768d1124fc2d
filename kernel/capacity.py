"""Capacity limits; named here so that programs can be written against them (design 2.5).

No limit is set in this version, and no limit means unlimited, so steps may already name their
`traffic_resource`. Setting or asking raises NotAvailable rather than pretending.
"""

from __future__ import annotations

from typing import NoReturn

from kernel.errors import NotAvailable


class Capacity:
    """Limits and permits of resources such as `web_crawler`."""

    def set_limit(
        self,
        resource: str,
        *,
        max_concurrency: int | None = None,
        max_starts_per_second: float | None = None,
    ) -> NoReturn:
        """Limit a resource. Raises: NotAvailable."""
        raise _not_yet(resource)

    def pause(self, resource: str) -> NoReturn:
        """Let nothing start. Raises: NotAvailable."""
        raise _not_yet(resource)

    def resume(self, resource: str) -> NoReturn:
        """End a pause. Raises: NotAvailable."""
        raise _not_yet(resource)

    def cooldown(self, resource: str, *, seconds: float) -> NoReturn:
        """Close a resource for a while. Raises: NotAvailable."""
        raise _not_yet(resource)

    def status(self, resource: str) -> NoReturn:
        """Show use and waiters. Raises: NotAvailable."""
        raise _not_yet(resource)


def _not_yet(resource: str) -> NotAvailable:
    return NotAvailable(f"limits of {resource!r}: capacity limits are not part of this version")
