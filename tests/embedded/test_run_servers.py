"""The servers of a test run: shared by its workers, and gone when its leader dies."""

import os
from pathlib import Path

from config.embedded import pidfile
from tests.kit import servers
from tests.kit.processes import python_code
from tests.kit.waiting import eventually

LEAD_AND_HANG = """
import threading
from tests.kit import servers
assert servers.lead_run()
servers.servers()
print("dir", servers.run_dir(), flush=True)
threading.Event().wait()
"""


def test_a_killed_run_leaves_no_server_behind() -> None:
    own = {servers.RUN_DIR, servers.LEADER, "BATON_TEST_MONGO_URL", "BATON_TEST_REDIS_URL"}
    hidden = {name: os.environ.pop(name) for name in own if name in os.environ}
    try:
        with python_code(LEAD_AND_HANG) as leader:
            folder = Path(leader.wait_for_line(r"dir (\S+)", timeout=60).group(1))
            pids = [
                pidfile.read(folder / name)
                for name in ("keeper.pid", "mongo/mongod.pid", "redis/redis.pid")
            ]
            leader.kill_group()
            eventually(
                lambda: not any(pid and pid.is_alive() for pid in pids),
                timeout=30,
                message="servers outlived their run",
            )
            eventually(lambda: not folder.exists(), message="the run's folder stayed")
    finally:
        os.environ.update(hidden)


def test_all_callers_of_a_run_get_the_same_servers(mongo_url: str, redis_url: str) -> None:
    again = servers.servers()
    assert (again.mongo_url, again.redis_url) == (mongo_url, redis_url)
