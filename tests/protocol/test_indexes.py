"""Every query that runs all day is answered from an index, bounded and already in order."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import ActivityContext, Sleep, Step
from kernel.publish import StartItem
from kernel.store import InstanceScan
from kernel.store.connection import Connection
from kernel.testing import TimeShift, run_until_idle
from tests.kit.commands import CommandLog
from tests.kit.kernels import QUEUE, DeadWorker, MakeKernel, definition, start

_SEEN = {"find", "aggregate", "update", "findAndModify"}
#: What `explain` takes of a command; the driver adds the rest by itself.
_SESSION = {
    "lsid",
    "txnNumber",
    "$clusterTime",
    "$db",
    "$readPreference",
    "writeConcern",
    "readConcern",
}


def asked(commands: CommandLog) -> list[dict[str, Any]]:
    """Return what can be explained of the commands on instances; a group statement by statement."""
    told: list[dict[str, Any]] = []
    for command in commands.on("workflow_instances"):
        kept = {key: value for key, value in command.items() if key not in _SESSION}
        each = kept.get("updates", [None])
        if next(iter(kept)) in _SEEN:
            told += [kept if one is None else kept | {"updates": [one]} for one in each]
    return told


def stages(plan: Any) -> Iterator[dict[str, Any]]:
    """Yield every stage of an explained plan, however it is nested."""
    if isinstance(plan, dict):
        if "stage" in plan:
            yield plan
        for key, part in plan.items():
            if key != "rejectedPlans":
                yield from stages(part)
    elif isinstance(plan, list):
        for part in plan:
            yield from stages(part)


@pytest.fixture(autouse=True)
def fresh_index(mongo_client: MongoClient[dict[str, Any]], mongo_db_name: str) -> None:
    """Begin without what an earlier test left: an index that has met arrays sorts nothing more."""
    mongo_client[mongo_db_name].drop_collection("workflow_instances")


def work(ctx: ActivityContext) -> Any:
    return Sleep(60) if ctx.input == "sleep" and ctx.resume is None else "done"


@pytest.mark.parametrize(("with_redis", "slots"), [(True, 1), (False, 1), (True, 8)])
def test_no_command_of_a_workflows_life_scans_or_sorts(
    make_kernel: MakeKernel,
    dead_worker: DeadWorker,
    commands: CommandLog,
    mongo_client: MongoClient[dict[str, Any]],
    mongo_db_name: str,
    mongo_url: str,
    with_redis: bool,
    slots: int,
) -> None:
    order = definition("test.index", {"a": work, "b": lambda _: "b"})
    kernel = make_kernel(order, with_redis=with_redis, slots_per_child=slots)
    for n in range(20):
        start(kernel, order, "sleep" if n % 2 else "plain", biz_key=f"k{n}")
    dead = dead_worker.begins(kernel, start(kernel, order, biz_key="dead"))
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    TimeShift(kernel).advance(seconds=61)
    connection = Connection(mongo_url, database=mongo_db_name)
    scan = InstanceScan(connection, kernel.clock)
    first = kernel.list_instances(limit=1)[0]
    scan.due_waiting(limit=5, after=(first.claimable_time, first.workflow_id))
    scan.due_claimable(limit=5, after=(first.claimable_time, first.workflow_id))
    connection.close()
    kernel.reconcile()
    run_until_idle(kernel, [QUEUE])
    kernel.supersede(dead.workflow_id, reason="x")
    kernel.find(biz_key="k1")
    explained = 0
    for command in _each_kind(asked(commands)):
        explained += 1
        for batch in command.keys() & {"updates"}:
            command[batch] = command[batch][:1]  # all of a bulk are of one shape
        answer = mongo_client[mongo_db_name].command("explain", command, verbosity="queryPlanner")
        plan = list(stages({k: v for k, v in answer.items() if k != "command"}))
        kinds = {stage["stage"] for stage in plan}
        assert "COLLSCAN" not in kinds, command
        assert "SORT" not in kinds, command
        scans = [stage for stage in plan if stage["stage"] == "IXSCAN"]
        assert scans or kinds <= {"EOF", "UPDATE"}, (kinds, command)
        for each in scans:
            assert _is_bounded(each["indexBounds"]), (each["indexBounds"], command)
    assert explained >= (6 if with_redis else 7)


def test_a_look_at_a_line_reads_no_more_than_it_shows(
    make_kernel: MakeKernel,
    commands: CommandLog,
    mongo_client: MongoClient[dict[str, Any]],
    mongo_db_name: str,
) -> None:
    of = definition("test.line", {"a": Step(work, traffic_resource="psp")})
    kernel = make_kernel(of, with_redis=False)
    kernel.capacity.pause("psp")
    kernel.start_many(of.plan, [StartItem(f"k{n}") for n in range(40)])
    kernel.drain([QUEUE])
    [*_, last] = kernel.capacity.status("psp").waiters
    waiters = kernel._parts.permits.waiters
    kernel._parts.permits.handing_on.close()  # nobody else looks at it meanwhile
    commands.clear()
    assert len(waiters.first("psp", limit=3)) == len(waiters.shown("psp", limit=3)) == 3
    assert len(waiters.first_whole("psp", limit=3)) == 3
    waiters.is_anybody_ahead("psp", priority=2, since=last.since)
    assert not waiters.is_empty("psp")
    place: dict[str, Any] = {
        "workflow_id": last.workflow_id,
        "priority": int(last.priority),
        "since": last.since,
    }
    assert waiters.position("psp", **place, limit=3) == 4, "it counts up to the limit"
    assert waiters.waited_for(limit=1) == ["psp"]
    asked_of_the_line = asked(commands)
    assert len(asked_of_the_line) == 8, "the position needs an id first"
    for command in asked_of_the_line:
        answer = mongo_client[mongo_db_name].command("explain", command, verbosity="executionStats")
        told = {k: v for k, v in answer.items() if k != "command"}
        kinds = {stage["stage"] for stage in stages(told)}
        assert not kinds & {"COLLSCAN", "SORT"}, command
        examined = max(_of_all("totalDocsExamined", told))
        assert examined <= 3, (examined, command)


@pytest.mark.parametrize("processes", [1, 4])
def test_the_index_of_an_earlier_line_goes_with_an_upgrade(
    make_kernel: MakeKernel,
    mongo_client: MongoClient[dict[str, Any]],
    mongo_db_name: str,
    processes: int,
) -> None:
    kernel = make_kernel()
    instances = mongo_client[mongo_db_name]["workflow_instances"]
    before = instances.index_information()
    instances.drop_index("blocked_on_id")
    instances.create_index(
        {"blocked_on.resources": 1, "priority": 1, "blocked_on.since": 1},
        name="blocked_on",
        partialFilterExpression={"blocked_on.resources": {"$exists": True}},
    )
    with ThreadPoolExecutor(processes) as pool:
        for made in [pool.submit(kernel.ensure_schema) for _ in range(processes)]:
            made.result()
    assert instances.index_information() == before


def _of_all(name: str, told: Any) -> Iterator[int]:
    """Yield a figure wherever an explained command tells it."""
    if isinstance(told, dict):
        yield from (value for key, value in told.items() if key == name)
    for part in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from _of_all(name, part)


def _is_bounded(bounds: dict[str, list[str]]) -> bool:
    """The first field of the index narrows the scan."""
    return next(iter(bounds.values())) != ["[MinKey, MaxKey]"]


def _each_kind(commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep one command of each shape: name, hint and the fields it filters by."""
    kept: dict[str, dict[str, Any]] = {}
    for command in commands:
        name = next(iter(command))
        filters: Any = command.get("filter") or command.get("query") or {}
        if name == "update":
            filters = command["updates"][0]["q"]
        if name == "aggregate":
            filters = command["pipeline"][0].get("$match", {})
        shape = [name, str(command.get("hint")), *sorted(filters)]
        kept.setdefault("|".join(shape), command)
    return list(kept.values())
