"""mongod from the installed wheel, as a replica set of one member.

Guarantees a writable primary when `start` returns, on the port remembered in the data folder or, if
that was taken meanwhile, on another one (the set is then told its new address).
Journal and majority writes are on, as in production; only caches are small.
Leaves process handling to `process` and the replica set to `replica_set`.
"""

from collections.abc import Sequence

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from config.embedded import binaries, ports, replica_set
from config.embedded.errors import StartFailed
from config.embedded.process import ServerProcess

_CACHE_GB = "0.25"
_OPLOG_MB = "256"


class MongoServer(ServerProcess):
    """One mongod with its database files in `data_dir/db`."""

    name = "mongod"

    @property
    def url(self) -> str:
        """`mongodb://127.0.0.1:PORT/?replicaSet=rs0`."""
        return f"mongodb://{self._address}/?replicaSet={replica_set.NAME}"

    @property
    def _address(self) -> str:
        return f"{ports.HOST}:{self.port}"

    def _command(self, port: int) -> Sequence[str]:
        database = (self.data_dir / "db").resolve()
        database.mkdir(exist_ok=True)
        options = {
            "dbpath": str(database),
            "port": str(port),
            "bind_ip": ports.HOST,
            "replSet": replica_set.NAME,
            "oplogSize": _OPLOG_MB,
            "wiredTigerCacheSizeGB": _CACHE_GB,
            "logpath": str(self.log_file.resolve()),
            "setParameter": "diagnosticDataCollectionEnabled=false",
        }
        flags = (part for key, value in options.items() for part in (f"--{key}", value))
        return [str(binaries.mongod()), *flags, "--logappend", "--nounixsocket"]

    def _answers(self, pid: int) -> bool:
        with replica_set.direct_client(self._address, timeout_ms=1000) as client:
            try:
                status = client.admin.command("serverStatus", repl=0, metrics=0, locks=0)
            except PyMongoError:
                return False
        return int(status["pid"]) == pid

    def _prepare(self) -> None:
        client: MongoClient[dict[str, object]]
        with replica_set.direct_client(self._address, timeout_ms=5000) as client:
            if not replica_set.make_primary(client, self._address, timeout=self.start_timeout):
                raise StartFailed(
                    f"mongod on {self._address} did not become primary of {replica_set.NAME} "
                    f"within {self.start_timeout:.0f} s; its log: {self.log_file}"
                )
