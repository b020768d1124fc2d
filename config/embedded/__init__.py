"""Real mongod and redis-server, started from the installed wheels for development and tests.

```
free ─start()─▶ running ─stop()/kill()─▶ free        one running server a data folder
```

Guarantees: one server a data folder (pid file checked with the process's start time, under a file
lock); the port is remembered inside the folder and kept while it is free; a hard kill of the server
loses nothing mongod acknowledged; a server does not outlive the process that started it (on Linux
the kernel sends it SIGTERM), and Ctrl-C does not reach it (a session of its own).
Leaves production servers to whoever runs them: `BATON_MONGO_URL` and `BATON_REDIS_URL` name those,
and `require_replica_set` says whether a MongoDB is fit.
"""

from config.embedded.errors import (
    AlreadyRunning,
    EmbeddedServerError,
    PlatformNotServed,
    PortTaken,
    StartFailed,
)
from config.embedded.mongo import MongoServer
from config.embedded.redis import RedisServer
from config.embedded.replica_set import require_replica_set

__all__ = [
    "AlreadyRunning",
    "EmbeddedServerError",
    "MongoServer",
    "PlatformNotServed",
    "PortTaken",
    "RedisServer",
    "StartFailed",
    "require_replica_set",
]
