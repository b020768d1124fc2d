"""Tests of this tier share a database, and the lab of the crash walks."""

from tests.crash.fixtures import settings
from tests.kit.shared_database import mongo_db_name, shared_database

__all__ = ["mongo_db_name", "settings", "shared_database"]
