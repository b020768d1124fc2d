"""The settings of real workers; the lab of the crash walks comes from the root."""

from tests.crash.fixtures import settings

__all__ = ["settings"]
