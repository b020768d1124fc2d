"""Collections, validators and indexes; `ensure_schema` may run as often as anybody likes.

The validator states what a query relies on: `claimable_time` is always a date (an `$expr`
comparison would also match null), status and priority stay inside their vocabulary.
"""

from __future__ import annotations

from typing import Any, Final

from pymongo import ASCENDING, IndexModel
from pymongo.errors import CollectionInvalid, OperationFailure

from kernel.model import InstanceStatus
from kernel.store.connection import Connection, translated

INSTANCES: Final = "workflow_instances"
LEASES: Final = "workflow_leases"
WORKERS: Final = "workflow_workers"
SIGNALS: Final = "workflow_signals"
CAPACITY: Final = "workflow_capacity"

#: A worker that has been silent this long is forgotten (decisions use their own, shorter bound).
_WORKER_TTL_SECONDS: Final = 600

_NAMESPACE_EXISTS: Final = 48
_INDEX_NOT_FOUND: Final = 27

#: Used by hint wherever both claimable indexes fit, so that the planner cannot take the wider one.
QUEUE_INDEX: Final = "status_queue_claimable_time"
CLAIMABLE_INDEX: Final = "status_claimable_time_id"
ID_INDEX: Final = "workflow_id"
SIGNAL_ID_INDEX: Final = "signal_id"
CREATED_INDEX: Final = "created_at_id"
#: The line of a resource: best lane first, then longest wait, then who was registered first.
BLOCKED_INDEX: Final = "blocked_on_id"
#: Indexes of earlier versions, which no query asks for any more.
_DROPPED: Final = ("blocked_on",)

_VALIDATOR: Final[dict[str, Any]] = {
    "$jsonSchema": {
        "bsonType": "object",
        "required": [
            "workflow_id",
            "biz_key",
            "type",
            "queue",
            "status",
            "claimable_time",
            "steps",
        ],
        "properties": {
            "workflow_id": {"bsonType": "string"},
            "biz_key": {"bsonType": "string"},
            "status": {"enum": [status.value for status in InstanceStatus]},
            "claimable_time": {"bsonType": "date"},
            "priority": {"bsonType": ["int", "long"], "minimum": 0, "maximum": 3},
            "fencing_token": {"bsonType": ["int", "long"]},
            "steps": {"bsonType": "object"},
        },
    }
}

_INDEXES: Final = [
    IndexModel([("workflow_id", ASCENDING)], name=ID_INDEX, unique=True),
    IndexModel([("biz_key", ASCENDING)], name="biz_key", unique=True),
    IndexModel(
        [("status", ASCENDING), ("claimable_time", ASCENDING), ("workflow_id", ASCENDING)],
        name=CLAIMABLE_INDEX,
    ),
    IndexModel(
        [("status", ASCENDING), ("queue", ASCENDING), ("claimable_time", ASCENDING)],
        name=QUEUE_INDEX,
    ),
    IndexModel([("created_at", ASCENDING), ("workflow_id", ASCENDING)], name=CREATED_INDEX),
    IndexModel(
        [
            ("blocked_on.resources", ASCENDING),
            ("priority", ASCENDING),
            ("blocked_on.since", ASCENDING),
            ("_id", ASCENDING),
        ],
        name=BLOCKED_INDEX,
        partialFilterExpression={"blocked_on.resources": {"$exists": True}},
    ),
]


_SIGNAL_INDEXES: Final = [
    IndexModel([("signal_id", ASCENDING)], name=SIGNAL_ID_INDEX, unique=True),
    IndexModel([("status", ASCENDING), ("signal_id", ASCENDING)], name="status_signal_id"),
    IndexModel(
        [("workflow_id", ASCENDING), ("status", ASCENDING), ("created_at", ASCENDING)],
        name="workflow_status_created",
    ),
    # Only closed signals carry this field, so a pending one can never be forgotten.
    IndexModel([("expires_at", ASCENDING)], name="expires_at", expireAfterSeconds=0),
]

_CAPACITY_INDEXES: Final = [
    IndexModel([("holders.owner.token", ASCENDING)], name="token"),
    IndexModel([("line", ASCENDING)], name="line", partialFilterExpression={"line": {"$gt": 0}}),
]


def ensure_schema(connection: Connection) -> None:
    """Create what is missing. On repeat, also by several processes at once: nothing.

    Raises:
        NotAReplicaSet, StoreUnavailable: as `require_replica_set`.
    """
    connection.require_replica_set()
    with translated():
        for name in (INSTANCES, LEASES, WORKERS, SIGNALS, CAPACITY):
            if name not in connection.database.list_collection_names():
                _create(connection, name)
        connection.database.command("collMod", INSTANCES, validator=_VALIDATOR)
        connection.collection(INSTANCES).create_indexes(_INDEXES)
        for name in _DROPPED:
            _drop_index(connection, name)
        connection.collection(SIGNALS).create_indexes(_SIGNAL_INDEXES)
        connection.collection(CAPACITY).create_indexes(_CAPACITY_INDEXES)
        connection.collection(WORKERS).create_index(
            "beat_at", name="beat_at", expireAfterSeconds=_WORKER_TTL_SECONDS
        )


def _create(connection: Connection, name: str) -> None:
    try:
        connection.database.create_collection(name)
    except CollectionInvalid:
        return  # it exists by now: another process was faster
    except OperationFailure as exc:
        if exc.code != _NAMESPACE_EXISTS:
            raise


def _drop_index(connection: Connection, name: str) -> None:
    try:
        connection.collection(INSTANCES).drop_index(name)
    except OperationFailure as exc:
        if exc.code != _INDEX_NOT_FOUND:
            raise
