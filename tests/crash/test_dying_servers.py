"""mongod or Redis dies under a running worker: it waits or does without, and nothing is doubled."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from config.embedded import RedisServer
from kernel import Kernel, Unavailable
from tests.crash import invariants
from tests.crash.worker import CROWD, Settings, arguments
from tests.kit.processes import python
from tests.kit.servers import mongod_of_one_test
from tests.kit.waiting import eventually

INSTANCES = 40
#: Entries after which the server dies: the worker is in the middle of its work.
MET_AT = 20


def start(kernel: Kernel, first: int, count: int) -> None:
    for n in range(first, first + count):
        kernel.start_or_resume(CROWD, biz_key=f"crowd:{n}")


def all_done(kernel: Kernel) -> bool:
    try:
        return kernel.list_instances(status=["running", "waiting", "failing"]) == []
    except Unavailable:
        return False


def judge(kernel: Kernel, settings: Settings, instances: int) -> None:
    found = kernel.list_instances(limit=instances + 1)
    assert [instance.status for instance in found] == ["completed"] * instances
    assert invariants.of_instances(found) == []
    entered = Counter((entry.biz_key, entry.step) for entry in settings.ledger.entries())
    assert set(entered.values()) == {1}
    assert len(entered) == 2 * instances


def test_killed_and_restarted_mongod_loses_and_doubles_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    with mongod_of_one_test(tmp_path / "mongo") as mongo:
        settings = replace(settings, mongo_url=mongo.url, lease=15, slow=True)
        kernel = settings.connect()
        kernel.ensure_schema()
        start(kernel, 0, INSTANCES)
        with python(*arguments(settings)) as worker:
            eventually(lambda: len(settings.ledger.entries()) >= MET_AT, timeout=60)
            mongo.kill()
            worker.wait_for_line("MongoDB")
            mongo.start()
            eventually(lambda: all_done(kernel), timeout=90, interval=0.2)
            judge(kernel, settings, INSTANCES)
        kernel.close()


@pytest.mark.parametrize("comes_back", [True, False], ids=["restarted", "gone for good"])
def test_killed_redis_loses_and_doubles_nothing(
    settings: Settings, tmp_path: Path, comes_back: bool
) -> None:
    with RedisServer(tmp_path / "redis") as redis:
        settings = replace(settings, redis_url=redis.url, lease=15, slow=True)
        kernel = settings.connect()
        kernel.ensure_schema()
        start(kernel, 0, INSTANCES)
        with python(*arguments(settings)) as worker:
            worker.wait_for_line("ready")
            eventually(lambda: len(settings.ledger.entries()) >= MET_AT, timeout=60)
            redis.kill()
            start(kernel, INSTANCES, 5)
            if comes_back:
                redis.start()
            start(kernel, INSTANCES + 5, 5)
            eventually(lambda: all_done(kernel), timeout=90, interval=0.2)
        judge(kernel, settings, INSTANCES + 10)
        kernel.close()
