"""Databases for tests, lent again and again: making one with its schema costs more than most tests.

```
lend ─▶ the one longest back, emptied now ─▶ test ─▶ schema as it was? ─▶ yes: back to the end
                                                                        └▶ no: dropped
```

Guarantees a database that has the kernel's schema, holds no document and belongs to one test. It
is emptied when it is lent, not when it comes back, and others are lent in between: what a killed
process had sent last has arrived by then. Leaves to the caller the dropping of all at the end.
"""

import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient

from kernel.store import Connection, ensure_schema

#: How many come back before one is lent again.
_REST = 3


class Databases:
    """The databases of one test process."""

    def __init__(self, client: MongoClient[dict[str, Any]], url: str) -> None:
        self._client = client
        self._url = url
        self._resting: deque[str] = deque()
        self._schema: object = None

    @contextmanager
    def lent(self) -> Iterator[str]:
        """Lend a database for the length of a block; give its name."""
        if len(self._resting) < _REST:
            name = self._made()
        else:
            name = self._resting.popleft()
            self.empty(name)
        try:
            yield name
        finally:
            if self._schema_of(name) == self._schema:
                self._resting.append(name)
            else:
                self._client.drop_database(name)

    def empty(self, name: str) -> None:
        """Delete every document of a database."""
        for collection in self._client[name].list_collection_names():
            self._client[name][collection].delete_many({})

    def drop(self) -> None:
        """Drop all that came back. On repeat: nothing."""
        while self._resting:
            self._client.drop_database(self._resting.pop())

    def _made(self) -> str:
        name = f"t_{uuid.uuid4().hex[:16]}"
        connection = Connection(self._url, database=name)
        try:
            ensure_schema(connection)
        finally:
            connection.close()
        if self._schema is None:
            self._schema = self._schema_of(name)
        return name

    def _schema_of(self, name: str) -> dict[str, Any]:
        database = self._client[name]
        return {
            found["name"]: (found["options"], database[found["name"]].index_information())
            for found in database.list_collections()
        }
