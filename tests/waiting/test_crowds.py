"""A crowd of waiting workflows costs nothing but its documents, and one event wakes it all."""

import dataclasses
import json
import threading
from collections import Counter
from typing import Any

from pymongo import MongoClient

from bench.crowd import clone_waiting
from kernel import InstanceStatus, Sleep, workflow_id_of
from kernel.testing import TimeShift, run_until_idle
from tests.crash.invariants import of_instances
from tests.crash.worker import Settings
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.processes import python
from tests.kit.waiting import eventually
from tests.waiting import worker

LISTENERS = 1_000
SLEEPERS = 100
BYTES = 2_048


def test_one_event_wakes_a_thousand_waiting_workflows_once_each_with_two_workers(
    settings: Settings, mongo_client: MongoClient[dict[str, Any]]
) -> None:
    settings = dataclasses.replace(settings, lease=30)
    kernel = worker.connect(settings)
    kernel.ensure_schema()
    kernel.start_or_resume(worker.LISTENING, biz_key=worker.listener(0))
    kernel.drain([worker.QUEUE])
    database = mongo_client[settings.database]
    first = workflow_id_of(worker.listener(0))
    keys = [worker.listener(n) for n in range(1, LISTENERS)]
    clone_waiting(database["workflow_instances"], first, keys)
    kernel.start_or_resume(worker.FANOUT, biz_key="event", input={"listeners": LISTENERS})
    told = ["-m", "tests.waiting.worker", json.dumps(dataclasses.asdict(settings))]
    with python(*told) as one, python(*told) as two:
        pids = {one.pid, two.pid}
        instances = database["workflow_instances"]
        eventually(
            lambda: instances.count_documents({"status": "completed"}) == LISTENERS + 1,
            timeout=120,
            interval=0.2,
        )
    entries = settings.ledger.entries()
    assert Counter(entry.biz_key for entry in entries) == dict.fromkeys(
        [worker.listener(0), *keys], 1
    )
    assert {entry.pid for entry in entries} == pids
    statuses = Counter(row["status"] for row in database["workflow_signals"].find())
    assert statuses == {"matched": LISTENERS}
    found = kernel.list_instances(limit=1_000)
    assert of_instances(found) == []
    assert {len(i.steps["listen"].attempts) for i in found if i.type == "waiting.listening"} == {2}
    kernel.close()


def test_sleepers_hold_no_thread_and_no_message_and_little_of_the_database(
    make_kernel: MakeKernel, mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str
) -> None:
    rung: list[str] = []
    order = definition(
        "test.sleepers",
        {"a": lambda ctx: Sleep(86_400, checkpoint={"task": ctx.idempotency_key})},
    )
    kernel = make_kernel(order, ring=rung.append)
    start(kernel, order, {"n": 0}, biz_key="sleeper:0")
    run_until_idle(kernel, [QUEUE])
    threads = threading.active_count()
    for n in range(1, SLEEPERS):
        start(kernel, order, {"n": n}, biz_key=f"sleeper:{n}")
    run_until_idle(kernel, [QUEUE])
    instances = mongo_client[mongo_db_name]["workflow_instances"]
    assert instances.count_documents({"status": InstanceStatus.WAITING}) == SLEEPERS
    assert threading.active_count() <= threads
    rung.clear()
    for _ in range(5):
        TimeShift(kernel).advance(seconds=3_600)
        assert kernel.tick() == 0
        assert not any(kernel.reconcile().found.values())
        assert kernel.drain([QUEUE]) == 0
    assert rung == []
    [size] = instances.aggregate(
        [{"$group": {"_id": None, "each": {"$avg": {"$bsonSize": "$$ROOT"}}}}]
    )
    assert size["each"] <= BYTES
