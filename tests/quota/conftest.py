"""The fixtures of the dispatch and job tiers, and the crash lab."""

from tests.crash.conftest import lab
from tests.dispatch.conftest import database_time, kernel
from tests.jobs.conftest import serving, site

__all__ = ["database_time", "kernel", "lab", "serving", "site"]
