"""A database is lent to one test after another, and none of them can tell."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pymongo import MongoClient

from tests.kit.databases import Databases

#: More than rest before one is lent again.
MANY = 8


@pytest.fixture
def lending(mongo_client: MongoClient[dict[str, Any]], mongo_url: str) -> Iterator[Databases]:
    lending = Databases(mongo_client, mongo_url)
    yield lending
    lending.drop()


def test_a_database_comes_again_without_documents_and_not_at_once(
    lending: Databases, mongo_client: MongoClient[dict[str, Any]]
) -> None:
    names = []
    for n in range(MANY):
        with lending.lent() as name:
            signals = mongo_client[name]["workflow_signals"]
            assert signals.count_documents({}) == 0
            assert len(signals.index_information()) > 1
            signals.insert_one({"signal_id": f"s{n}"})
        names.append(name)
    assert len(set(names)) < MANY
    assert all(len(set(names[n : n + 3])) == 3 for n in range(MANY - 2))


def test_two_borrowers_at_once_have_two_databases(lending: Databases) -> None:
    with ExitStack() as stack:
        names = [stack.enter_context(lending.lent()) for _ in range(5)]
    assert len(set(names)) == 5


def test_a_database_whose_schema_was_changed_is_never_seen_again(
    lending: Databases, mongo_client: MongoClient[dict[str, Any]]
) -> None:
    with lending.lent() as changed:
        mongo_client[changed]["workflow_signals"].create_index("extra")
    with lending.lent() as grown:
        mongo_client[grown].create_collection("more")
    assert not {changed, grown} & set(mongo_client.list_database_names())
    for _ in range(MANY):
        with lending.lent() as name:
            assert name not in {changed, grown}
    lending.drop()
    assert name not in mongo_client.list_database_names()
