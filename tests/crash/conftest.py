"""The workers' settings; the lab is shared by every tier and comes from the root."""

from tests.crash.fixtures import settings

__all__ = ["settings"]
