"""Two workers on the same work: each step is entered exactly once, whatever the hints say."""

from collections import Counter
from dataclasses import replace
from enum import StrEnum

import pytest

from kernel import Kernel
from kernel.hints import RedisHints
from tests.crash import invariants
from tests.crash.worker import CROWD, QUEUE, Settings, arguments
from tests.kit.processes import python
from tests.kit.waiting import eventually

INSTANCES = 200


class Hints(StrEnum):
    """What Redis has to say meanwhile."""

    RIGHT = "right hints"
    FALSE = "false hints"
    NONE = "no hints"


@pytest.mark.parametrize("hints", Hints)
def test_two_workers_enter_every_step_of_200_instances_once(
    settings: Settings, hints: Hints
) -> None:
    settings = replace(settings, lease=30, slow=True)
    if hints is Hints.NONE:
        settings = replace(settings, redis_url=None)
    kernel = settings.connect()
    kernel.ensure_schema()
    for n in range(INSTANCES):
        kernel.start_or_resume(CROWD, biz_key=f"crowd:{n}")

    def is_over() -> bool:
        if hints is Hints.FALSE:
            propose_everything(settings, kernel)
        return kernel.list_instances(status="running", limit=1) == []

    with python(*arguments(settings)) as one, python(*arguments(settings)) as two:
        pids = {one.pid, two.pid}
        eventually(is_over, timeout=90, interval=0.1)
    entries = settings.ledger.entries()
    assert Counter(entry.step for entry in entries) == {"one": INSTANCES, "two": INSTANCES}
    assert set(Counter((entry.biz_key, entry.step) for entry in entries).values()) == {1}
    assert {entry.pid for entry in entries} == pids
    found = kernel.list_instances(limit=INSTANCES + 1)
    assert [instance.status for instance in found] == ["completed"] * INSTANCES
    assert invariants.of_instances(found) == []
    kernel.close()


def propose_everything(settings: Settings, kernel: Kernel) -> None:
    """Put what is running, held or not, into its lane as due."""
    assert settings.redis_url is not None
    lanes = RedisHints(settings.redis_url, key_prefix=settings.key_prefix)
    for instance in kernel.list_instances(status="running", limit=INSTANCES):
        lanes.push(QUEUE, instance.workflow_id, priority=0, at_ms=0)
    lanes.close()
