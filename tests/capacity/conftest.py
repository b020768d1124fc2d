"""Tests of this tier share a database."""

from tests.kit.shared_database import mongo_db_name, shared_database

__all__ = ["mongo_db_name", "shared_database"]
