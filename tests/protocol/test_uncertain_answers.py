"""Lost answers: no result is thrown away, no attempt doubled, whatever really happened."""

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel import (
    ActivityContext,
    FinalizerContext,
    InstanceStatus,
    Kernel,
    KernelConfig,
    RetryPolicy,
    Sleep,
    Step,
    StepStatus,
    StoreUnavailable,
    Yield,
)
from kernel.definition import Definition
from kernel.testing import TimeShift
from tests.kit.kernels import QUEUE, definition, start
from tests.protocol.failing_mongo import LOST_ANSWERS, FailingMongo

every_way = pytest.mark.parametrize("how", LOST_ANSWERS)


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingMongo]:
    folder: Path = tmp_path_factory.mktemp("failing-mongo")
    with FailingMongo(folder) as server:
        yield server
        server.kill()


@pytest.fixture
def kernel(mongo: FailingMongo, eager_driver: None) -> Iterator[Kernel]:
    """A kernel on the failing server, without Redis, so that nothing else asks it."""
    # A failure on demand changes nothing the driver could be told of, so it has to look often.
    url = f"{mongo.url}&heartbeatFrequencyMS=20"
    config = KernelConfig(mongo_url=url, database=f"t_{uuid.uuid4().hex[:12]}", lease=15)
    kernel = Kernel.connect(config)
    kernel.ensure_schema()
    yield kernel
    kernel.close()


def run(kernel: Kernel, of: Definition, value: object = None) -> str:
    kernel.register(of)
    workflow_id = start(kernel, of, value)
    kernel.drain([QUEUE])
    return workflow_id


@every_way
@pytest.mark.parametrize("times", [1, 3])
def test_a_result_survives_the_loss_of_its_commits_answer(
    kernel: Kernel, mongo: FailingMongo, how: str, times: int
) -> None:
    calls: list[str] = []

    def activity(ctx: ActivityContext) -> str:
        calls.append(ctx.step)
        if ctx.step == "a":
            failing.__enter__()
        return f"result of {ctx.step}"

    failing = mongo.failing("update", how=how, times=times)
    order = definition("test.lost", {"a": activity, "b": activity})
    workflow_id = run(kernel, order)
    failing.__exit__(None, None, None)
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert instance.output == {"a": "result of a", "b": "result of b"}
    assert calls == ["a", "b"]
    for step in instance.steps.values():
        assert (step.attempt, step.recoveries, len(step.attempts)) == (1, 0, 1)


@every_way
@pytest.mark.parametrize("ending", ["sleep", "yield", "retry", "fail"])
def test_a_releasing_commit_survives_the_loss_of_its_answer(
    kernel: Kernel, mongo: FailingMongo, how: str, ending: str
) -> None:
    calls: list[Any] = []

    def activity(ctx: ActivityContext) -> Any:
        calls.append(ctx.checkpoint)
        if len(calls) > 1:
            return "again"
        failing.__enter__()
        match ending:
            case "sleep":
                return Sleep(60, checkpoint=1)
            case "yield":
                return Yield(checkpoint=1)
        raise OSError("down")

    retry = RetryPolicy(max_retry=1 if ending == "retry" else 0, backoff="fixed", initial=60)
    failing = mongo.failing("update", how=how)
    workflow_id = run(kernel, definition("test.lost", {"a": Step(activity, retry=retry)}))
    failing.__exit__(None, None, None)
    if ending == "fail":
        assert kernel.get(workflow_id).status is InstanceStatus.FAILED
        assert len(calls) == 1
        return
    TimeShift(kernel).advance(seconds=61)
    kernel.tick()
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": "again"}
    assert instance.steps["a"].attempt == (2 if ending == "retry" else 1)
    assert instance.steps["a"].recoveries == 0
    assert len(calls) == 2


@every_way
def test_a_wave_survives_the_loss_of_every_answer(
    kernel: Kernel, mongo: FailingMongo, how: str
) -> None:
    meet = threading.Barrier(3)
    calls: list[str] = []

    def activity(ctx: ActivityContext) -> str:
        calls.append(ctx.step)
        if meet.wait(20) == 0:
            failing.__enter__()
        return ctx.step

    failing = mongo.failing("update", how=how, times=4)
    graph = definition(
        "test.lost",
        {**dict.fromkeys("abc", activity), "d": lambda ctx: [ctx.output(s) for s in "abc"]},
        depends_on={"a": [], "b": [], "c": [], "d": ["a", "b", "c"]},
    )
    workflow_id = run(kernel, graph)
    failing.__exit__(None, None, None)
    assert kernel.get(workflow_id).output["d"] == ["a", "b", "c"]
    assert sorted(calls) == ["a", "b", "c"]


@every_way
def test_a_claim_whose_answer_is_lost_is_found_or_taken_again(
    kernel: Kernel, mongo: FailingMongo, how: str
) -> None:
    order = definition("test.lost", {"a": lambda _: "done"})
    kernel.register(order)
    workflow_id = start(kernel, order)
    with mongo.failing("findAndModify", how=how):
        kernel.drain([QUEUE])
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.COMPLETED
    assert (instance.steps["a"].attempt, instance.steps["a"].recoveries) == (1, 0)


@every_way
def test_a_begin_whose_answer_is_lost_enters_its_activity_once(
    kernel: Kernel, mongo: FailingMongo, how: str
) -> None:
    calls: list[int] = []
    order = definition("test.lost", {"a": lambda ctx: calls.append(ctx.attempt)})
    kernel.register(order)
    workflow_id = start(kernel, order)
    with mongo.failing("update", how=how, times=2):
        kernel.drain([QUEUE])
    assert kernel.get(workflow_id).status is InstanceStatus.COMPLETED
    assert calls == [1]


@every_way
def test_a_registration_whose_answer_is_lost_may_be_repeated(
    kernel: Kernel, mongo: FailingMongo, how: str
) -> None:
    order = definition("test.lost", {"a": lambda _: "done"})
    kernel.register(order)
    with mongo.failing("findAndModify", how=how), pytest.raises(StoreUnavailable):
        start(kernel, order)
    workflow_id = start(kernel, order)
    kernel.drain([QUEUE])
    assert kernel.get(workflow_id).output == {"a": "done"}
    assert len(kernel.list_instances()) == 1


@every_way
def test_a_replay_whose_answer_is_lost_may_be_repeated(
    kernel: Kernel, mongo: FailingMongo, how: str
) -> None:
    order = definition("test.lost", {"a": lambda ctx: ctx.input["ok"] or 1 / 0})
    workflow_id = run(kernel, order, {"ok": 0})
    assert kernel.get(workflow_id).status is InstanceStatus.FAILED
    with mongo.failing("update", how=how), pytest.raises(StoreUnavailable):
        start(kernel, order, {"ok": 1}, fencing_token=2)
    start(kernel, order, {"ok": 1}, fencing_token=2)
    kernel.drain([QUEUE])
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": 1}
    assert (instance.retry_count, instance.fencing_token) == (1, 2)


@every_way
def test_a_supersede_whose_answer_is_lost_may_be_repeated(
    kernel: Kernel, mongo: FailingMongo, how: str
) -> None:
    order = definition("test.lost", {"a": lambda _: "done"})
    kernel.register(order)
    workflow_id = start(kernel, order)
    with mongo.failing("update", how=how), pytest.raises(StoreUnavailable):
        kernel.supersede(workflow_id, reason="x")
    kernel.supersede(workflow_id, reason="x")
    assert kernel.get(workflow_id).status is InstanceStatus.CANCELED


@every_way
@pytest.mark.parametrize("kind", ["success_finalizer", "failure_finalizer"])
def test_a_finalizer_runs_once_though_the_answers_around_it_are_lost(
    kernel: Kernel, mongo: FailingMongo, how: str, kind: str
) -> None:
    calls: list[int] = []

    def activity(ctx: ActivityContext) -> str:
        before.__enter__()
        if kind == "failure_finalizer":
            raise OSError("down")
        return "done"

    def finalizer(ctx: FinalizerContext) -> None:
        before.__exit__(None, None, None)
        calls.append(ctx.attempt)
        after.__enter__()

    before = mongo.failing("update", how=how)
    after = mongo.failing("update", how=how)
    options: dict[str, Any] = {kind: finalizer}
    workflow_id = run(kernel, definition("test.lost", {"a": activity}, **options))
    after.__exit__(None, None, None)
    assert kernel.get(workflow_id).status.is_terminal
    assert calls == [1]


def test_a_result_outlasts_a_silent_mongo(kernel: Kernel, mongo: FailingMongo) -> None:
    calls: list[int] = []

    def activity(ctx: ActivityContext) -> str:
        calls.append(ctx.attempt)
        silent.__enter__()
        threading.Timer(1.0, silent.__exit__, args=(None, None, None)).start()
        return "kept"

    silent = mongo.silent("update", "aggregate", "find")
    workflow_id = run(kernel, definition("test.lost", {"a": activity, "b": lambda _: "on"}))
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": "kept", "b": "on"}
    assert calls == [1]


def test_a_result_outlasts_the_death_and_restart_of_mongo(
    kernel: Kernel, mongo: FailingMongo
) -> None:
    calls: list[int] = []

    def activity(ctx: ActivityContext) -> str:
        calls.append(ctx.attempt)
        mongo.kill()
        dead.set()
        return "kept"

    def revive() -> None:
        assert dead.wait(30)
        assert not revived.wait(1.0)
        mongo.start()
        revived.set()

    dead, revived = threading.Event(), threading.Event()
    order = definition("test.lost", {"a": activity, "b": lambda _: "on"})
    kernel.register(order)
    workflow_id = start(kernel, order)
    worker = threading.Thread(target=kernel.drain, args=([QUEUE],))
    worker.start()
    revive()  # in this thread: the server lives as long as the one that started it
    worker.join(60)
    instance = kernel.get(workflow_id)
    assert instance.output == {"a": "kept", "b": "on"}
    assert calls == [1]
    assert instance.steps["a"].status is StepStatus.COMPLETED


def test_a_claim_lost_while_mongo_was_silent_commits_nothing(
    kernel: Kernel, mongo: FailingMongo
) -> None:
    def activity(ctx: ActivityContext) -> str:
        assert kernel.supersede(ctx.workflow_id, reason="obsolete")
        silent.__enter__()
        threading.Timer(0.3, silent.__exit__, args=(None, None, None)).start()
        return "late"

    silent = mongo.silent("update")
    workflow_id = run(kernel, definition("test.lost", {"a": activity, "b": lambda _: "never"}))
    instance = kernel.get(workflow_id)
    assert instance.status is InstanceStatus.CANCELED
    assert instance.output == {}
