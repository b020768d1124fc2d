"""Make a mongod the primary of a set of one, and check that a given MongoDB is a replica set.

Guarantees that initiating and moving the set are repeatable. Forced reconfiguration is used only on
the embedded set of one member, which has nobody to disagree with.
Leaves schema and indexes to `kernel.ensure_schema`.
"""

import time
from typing import Any

from pymongo import MongoClient
from pymongo.errors import ConfigurationError, OperationFailure, PyMongoError

from kernel import NotAReplicaSet

#: Name of the embedded set.
NAME = "rs0"

_NOT_YET_INITIALIZED = 94
_HOW_TO_FIX = (
    "Start mongod with --replSet rs0, run rs.initiate() once in mongosh, and name the set in the "
    "address: mongodb://HOST:27017/?replicaSet=rs0 (one member is enough). Without "
    "BATON_MONGO_URL the bundled mongod is used."
)


def direct_client(address: str, *, timeout_ms: int) -> MongoClient[dict[str, Any]]:
    """Return a client for this one member, primary or not."""
    return MongoClient(
        f"mongodb://{address}",
        directConnection=True,
        serverSelectionTimeoutMS=timeout_ms,
        connectTimeoutMS=timeout_ms,
    )


def make_primary(client: MongoClient[dict[str, Any]], address: str, *, timeout: float) -> bool:
    """Initiate the set, or give it its new address, and wait until its member is primary.

    Returns False when that took longer than `timeout` seconds. On repeat: nothing changes.
    """
    deadline = time.monotonic() + timeout
    if client.local["system.replset"].find_one() is None:
        member = {"_id": 0, "host": address}
        client.admin.command("replSetInitiate", {"_id": NAME, "members": [member]})
    moved = False
    while time.monotonic() < deadline:
        if client.admin.command("hello").get("isWritablePrimary"):
            return True
        if not moved:
            moved = _move(client, address)
        time.sleep(0.02)
    return False


def _move(client: MongoClient[dict[str, Any]], address: str) -> bool:
    """Tell the set its member's address; False while the stored configuration is being loaded."""
    try:
        config = client.admin.command("replSetGetConfig")["config"]
    except OperationFailure as refusal:
        # The same code means "never initiated" and "still loading"; the caller ruled out the first.
        if refusal.code == _NOT_YET_INITIALIZED:
            return False
        raise
    if [member["host"] for member in config["members"]] != [address]:
        config["members"] = [{**config["members"][0], "host": address}]
        config["version"] += 1
        client.admin.command("replSetReconfig", config, force=True)
    return True


def require_replica_set(url: str, *, timeout: float = 5.0) -> None:
    """Check that the MongoDB at `url` answers and is a replica set (or a mongos).

    Raises: NotAReplicaSet, saying what to change; the address in it carries no password.
    """
    milliseconds = int(timeout * 1000)
    try:
        client: MongoClient[dict[str, Any]] = MongoClient(
            url, serverSelectionTimeoutMS=milliseconds, connectTimeoutMS=milliseconds
        )
    except (PyMongoError, ValueError) as problem:
        raise NotAReplicaSet(f"BATON_MONGO_URL is no MongoDB address: {problem}.") from problem
    with client:
        try:
            answer = client.admin.command("hello")
        except ConfigurationError as problem:
            raise NotAReplicaSet(f"BATON_MONGO_URL: {problem}. {_HOW_TO_FIX}") from problem
        except PyMongoError as problem:
            raise NotAReplicaSet(
                f"the MongoDB of BATON_MONGO_URL did not answer as a replica set within "
                f"{timeout:.0f} s: {str(problem)[:300]}. {_HOW_TO_FIX}"
            ) from problem
    if not answer.get("setName") and answer.get("msg") != "isdbgrid":
        raise NotAReplicaSet(f"the MongoDB of BATON_MONGO_URL is no replica set. {_HOW_TO_FIX}")
