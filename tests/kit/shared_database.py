"""One database for all tests of a process, emptied after each: making its schema costs more.

A tier whose tests need no schema of their own imports both fixtures into its conftest.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient


@pytest.fixture(scope="session")
def shared_database(mongo_client: MongoClient[dict[str, Any]]) -> Iterator[str]:
    """A database whose schema the first kernel makes."""
    name = f"t_{uuid.uuid4().hex[:16]}"
    yield name
    mongo_client.drop_database(name)


@pytest.fixture
def mongo_db_name(shared_database: str, mongo_client: MongoClient[dict[str, Any]]) -> Iterator[str]:
    """The shared database, without documents."""
    yield shared_database
    database = mongo_client[shared_database]
    for name in database.list_collection_names():
        database[name].delete_many({})
