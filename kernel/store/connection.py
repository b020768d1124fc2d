"""One client per process, its guarantees, and its errors in the kernel's words.

Truth is written with majority and journal and read from the primary (design 1.3). The driver has
already retried once when an error arrives here; what it means for a write is then uncertain, and
the caller re-reads (design 1.4).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import errors as driver
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.monitoring import (
    ConnectionPoolListener,
    PoolClearedEvent,
    PoolCreatedEvent,
    PoolReadyEvent,
)
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.topology_description import TopologyDescription
from pymongo.write_concern import WriteConcern

from kernel.errors import (
    InvariantViolation,
    NotAReplicaSet,
    StoreUnavailable,
    UsageError,
    unencodable,
)

Document = dict[str, Any]

#: How long one command may take before its outcome counts as uncertain.
_SOCKET_TIMEOUT_MS: Final = 10_000
_SELECTION_TIMEOUT_MS: Final = 3_000
_CONNECT_TIMEOUT_MS: Final = 2_000
#: Longer than finding a server takes that is there.
_SEARCH_SECONDS: Final = 1.0
#: Bytes that are no text are read as U+FFFD, which no name of ours holds.
_ODD_TEXT: Final = "replace"
#: Server codes of refusals that a later try may not meet: elections, shutdowns, full caches, time.
_PASSING_CODES: Final = frozenset(
    {6, 7, 11, 24, 50, 64, 89, 91, 112, 134, 175, 189, 202, 246, 262, 9001, 10107, 11600, 11602}
    | {13388, 13435, 13436}
)
_TOO_LARGE_CODES: Final = frozenset({10334, 17419, 17420})


class Connection:
    """A lazily connecting client and the database it keeps truth in."""

    def __init__(self, url: str, *, database: str) -> None:
        self._absences = _Absences()
        try:
            self.client: pymongo.MongoClient[Document] = pymongo.MongoClient(
                url,
                tz_aware=True,
                datetime_conversion="DATETIME_AUTO",
                retryWrites=True,
                w="majority",
                journal=True,
                serverSelectionTimeoutMS=_SELECTION_TIMEOUT_MS,
                connectTimeoutMS=_CONNECT_TIMEOUT_MS,
                socketTimeoutMS=_SOCKET_TIMEOUT_MS,
                appname="baton",
                event_listeners=[self._absences],
            )
        except (driver.ConfigurationError, driver.InvalidURI, ValueError) as exc:
            raise UsageError(f"mongo_url is not usable: {exc}") from exc
        # A date beyond Python's is a value of its own, which the model refuses, and text that is
        # none is marked: a fault of its document, and not of the whole answer it came in.
        options: CodecOptions[Document] = CodecOptions(
            tz_aware=True,
            datetime_conversion=DatetimeConversion.DATETIME_AUTO,
            unicode_decode_error_handler=_ODD_TEXT,
        )
        self.database: Database[Document] = self.client.get_database(
            database,
            codec_options=options,
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern(w="majority", j=True),
        )

    def collection(self, name: str) -> Collection[Document]:
        """Return a collection with this connection's guarantees."""
        return self.database[name]

    def majority(self, name: str) -> Collection[Document]:
        """Return a collection whose reads see only what no failover can undo."""
        return self.database[name].with_options(read_concern=ReadConcern("majority"))

    @contextmanager
    def bounded(self, seconds: float | None) -> Iterator[None]:
        """Bound all commands of the block together, e.g. so that a request never waits for them."""
        if seconds is None:
            yield
            return
        with pymongo.timeout(seconds):
            yield

    def came_back_within(self, seconds: float) -> bool:
        """Tell whether MongoDB was away and has answered again for less than this time.

        While it is away this waits for it, as the caller's command would: what was decided without
        knowing of an absence must not be carried out after it.

        Raises:
            StoreUnavailable: it is still away.
        """
        if not self._absences.is_here(self.client.topology_description):
            with translated():
                self.client.admin.command("ping")
        self._absences.look_at(self.client.topology_description)
        return time.monotonic() - self._absences.back_since < seconds

    def require_replica_set(self) -> None:
        """Refuse a server that cannot keep the guarantees.

        Raises:
            NotAReplicaSet: it is a standalone server.
            StoreUnavailable: it did not answer.
        """
        with translated():
            hello = self.client.admin.command("hello")
        if "setName" not in hello and hello.get("msg") != "isdbgrid":
            raise NotAReplicaSet(
                "this MongoDB is a standalone server; Baton needs a replica set (one node will do):"
                " start mongod with --replSet rs0, run rs.initiate() once in mongosh,"
                " and add ?replicaSet=rs0 to the URL"
            )

    def close(self) -> None:
        """Close the client's sockets. On repeat: nothing."""
        self.client.close()


class _Absences(ConnectionPoolListener):
    """Notes when MongoDB was away and has come back.

    Told by the driver at once, not by its topology events, which lag by a second: a pool that is
    ready again after it was cleared, or ready long after it was first wanted, or a primary of
    another election.
    """

    def __init__(self) -> None:
        self.back_since = float("-inf")
        self._silent_since: dict[object, float] = {}
        self._elected: object = None

    def is_here(self, topology: TopologyDescription) -> bool:
        """Tell whether a primary is known that has answered since it was last heard to be away."""
        servers = topology.server_descriptions().values()
        return any(s.is_writable and s.address not in self._silent_since for s in servers)

    def pool_created(self, event: PoolCreatedEvent) -> None:
        """A server is looked for."""
        self._silent_since[event.address] = time.monotonic()

    def pool_cleared(self, event: PoolClearedEvent) -> None:
        """A server that did answer does so no more."""
        self._silent_since[event.address] = float("-inf")

    def pool_ready(self, event: PoolReadyEvent) -> None:
        """A server answers; only after an absence that is news."""
        now = time.monotonic()
        if now - self._silent_since.pop(event.address, now) > _SEARCH_SECONDS:
            self.back_since = now

    def look_at(self, topology: TopologyDescription) -> None:
        """Notice a new election since the last look; the first one found is none."""
        servers = topology.server_descriptions().values()
        elected = next(((s.address, s.election_id) for s in servers if s.is_writable), None)
        if elected is not None and elected != self._elected:
            if self._elected is not None:
                self.back_since = time.monotonic()
            self._elected = elected

    def _ignore(self, event: object) -> None:
        """The rest of a pool's life says nothing about absences."""

    pool_closed = connection_created = connection_ready = _ignore
    connection_closed = connection_check_out_started = connection_check_out_failed = _ignore
    connection_checked_out = connection_checked_in = _ignore


@contextmanager
def translated() -> Iterator[None]:
    """Turn driver errors into the kernel's: unavailable (try again) or a fault of ours.

    Raises:
        InvalidValue: text of the caller that no database can hold, so that nothing is named so.
    """
    try:
        yield
    except UnicodeEncodeError as exc:
        raise unencodable(exc) from exc
    except driver.DuplicateKeyError:
        raise  # a race lost, which the caller answers
    except driver.OperationFailure as exc:
        if is_passing(exc):
            raise StoreUnavailable(f"MongoDB could not answer: {_first_line(exc)}") from exc
        raise InvariantViolation(f"MongoDB refused a command: {_first_line(exc)}") from exc
    except driver.PyMongoError as exc:
        raise StoreUnavailable(f"MongoDB did not answer: {_first_line(exc)}") from exc


def is_passing(exc: driver.OperationFailure) -> bool:
    """Tell whether a refusal comes from the server's state and not from our command."""
    if isinstance(exc, driver.BulkWriteError):
        # Each statement may have been refused for a reason of its own.
        refused = exc.details.get("writeErrors") or []
        return all(is_passing_code(error.get("code")) for error in refused)
    return (
        isinstance(exc, driver.WTimeoutError | driver.WriteConcernError | driver.ExecutionTimeout)
        or is_passing_code(exc.code)
        or exc.has_error_label("RetryableWriteError")
        or exc.has_error_label("TransientTransactionError")
    )


def is_passing_code(code: object) -> bool:
    """Tell the same of an error code alone, as the answers of a bulk carry it."""
    return code in _PASSING_CODES


def is_too_large(exc: driver.PyMongoError) -> bool:
    """Tell whether a refusal says that a document would be larger than the server allows."""
    if isinstance(exc, driver.DocumentTooLarge):
        return True
    return isinstance(exc, driver.OperationFailure) and exc.code in _TOO_LARGE_CODES


def _first_line(exc: Exception) -> str:
    text = str(exc).split("\n", 1)[0]
    for noise in (", full error", " (configured timeouts", ", Timeout:", ", Topology Description"):
        text = text.split(noise, 1)[0]
    return text[:300]
