"""Two workers on the same work: each step is entered exactly once, with and without hints."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.crash import invariants
from tests.crash.worker import CROWD, Settings, arguments
from tests.kit.processes import python
from tests.kit.waiting import eventually

INSTANCES = 200


@pytest.mark.parametrize("with_redis", [True, False], ids=["with Redis", "without Redis"])
def test_two_workers_enter_every_step_of_200_instances_once(
    settings: Settings, with_redis: bool
) -> None:
    settings = replace(
        settings, lease=30, redis_url=settings.redis_url if with_redis else None, slow=True
    )
    kernel = settings.connect()
    kernel.ensure_schema()
    for n in range(INSTANCES):
        kernel.start_or_resume(CROWD, biz_key=f"crowd:{n}")
    with python(*arguments(settings)) as one, python(*arguments(settings)) as two:
        pids = {one.pid, two.pid}
        eventually(lambda: kernel.list_instances(status="running") == [], timeout=90, interval=0.2)
    entries = settings.ledger.entries()
    assert Counter(entry.step for entry in entries) == {"one": INSTANCES, "two": INSTANCES}
    assert set(Counter((entry.biz_key, entry.step) for entry in entries).values()) == {1}
    assert {entry.pid for entry in entries} == pids
    found = kernel.list_instances(limit=INSTANCES + 1)
    assert [instance.status for instance in found] == ["completed"] * INSTANCES
    assert invariants.of_instances(found) == []
    kernel.close()
