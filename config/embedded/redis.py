"""redis-server from the installed wheel.

Guarantees an answering server on 127.0.0.1. It keeps nothing over a restart unless asked to
(`appendonly`): Redis holds hints and wakeups only, all rebuilt from Mongo.
Leaves process handling to `process`.
"""

from collections.abc import Sequence
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from config.embedded import binaries, ports
from config.embedded.process import ServerProcess


class RedisServer(ServerProcess):
    """One redis-server with its working folder under `data_dir`."""

    name = "redis"

    def __init__(self, data_dir: Path, port: int | None = None, *, appendonly: bool = False):
        super().__init__(data_dir, port)
        self._appendonly = appendonly

    @property
    def url(self) -> str:
        """`redis://127.0.0.1:PORT/0`."""
        return f"redis://{ports.HOST}:{self.port}/0"

    def _command(self, port: int) -> Sequence[str]:
        options = {
            "port": str(port),
            "bind": ports.HOST,
            "dir": str(self.data_dir.resolve()),
            "logfile": str(self.log_file.resolve()),
            "save": "",
            "appendonly": "yes" if self._appendonly else "no",
            "daemonize": "no",
        }
        flags = (part for key, value in options.items() for part in (f"--{key}", value))
        return [str(binaries.redis_server()), *flags]

    def _answers(self, pid: int) -> bool:
        client = redis.Redis(
            host=ports.HOST,
            port=self.port,
            socket_connect_timeout=1.0,
            socket_timeout=1.0,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            answer = client.info("server")
        except RedisError:
            return False
        finally:
            client.close()
        return isinstance(answer, dict) and answer.get("process_id") == pid
