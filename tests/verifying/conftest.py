"""The fixtures of the job tier."""

from tests.dispatch.conftest import database_time, kernel
from tests.jobs.conftest import serving, site

__all__ = ["database_time", "kernel", "serving", "site"]
