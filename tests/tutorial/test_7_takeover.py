"""Chapter 7, takeover: a machine dies in the middle of a step, and the next one carries on."""

import os
import signal
import sys
import threading
from pathlib import Path

from kernel import ActivityContext, Definition, Kernel, KernelConfig, Plan, Step
from kernel.testing import TimeShift, run_until_idle
from tests.kit.processes import python
from tests.tutorial.conftest import LEASE, Machine

FERRY = Plan("tutorial.ferry", queue="tutorial", steps=["load", "cross", "unload"])


class Ferry:
    """Three activities that write down, in a file all machines share, that they were entered."""

    def __init__(self, logbook: Path, *, sinks: bool = False) -> None:
        self._logbook = logbook
        self._sinks = sinks

    def enter(self, ctx: ActivityContext) -> dict[str, int]:
        with self._logbook.open("a", encoding="utf-8") as logbook:
            logbook.write(f"{ctx.step}\n")
        if self._sinks and ctx.step == "cross":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"attempt": ctx.attempt}

    def definition(self) -> Definition:
        return Definition(FERRY, steps={name: Step(self.enter) for name in FERRY.steps})


def test_another_machine_carries_on_and_repeats_only_the_step_that_was_running(
    machine: Machine, child_env: dict[str, str], tmp_path: Path
) -> None:
    """The dead machine's lease runs out, then anyone may claim; completed steps stay completed."""
    logbook = tmp_path / "logbook"
    other = machine(Ferry(logbook).definition())
    started = other.start_or_resume(FERRY, biz_key="ferry:1")

    with python("-m", "tests.tutorial.test_7_takeover", str(logbook), env=child_env) as doomed:
        assert doomed.wait() == -signal.SIGKILL, doomed.output

    assert run_until_idle(other, ["tutorial"]) == 0
    assert "runs step cross" in other.why(started.workflow_id).sentence
    TimeShift(other).advance(seconds=LEASE + 1)
    assert "went silent" in other.why(started.workflow_id).sentence
    run_until_idle(other, ["tutorial"])

    assert logbook.read_text(encoding="utf-8").split() == ["load", "cross", "cross", "unload"]
    done = other.get(started.workflow_id)
    assert done.status == "completed"
    assert [done.output[name]["attempt"] for name in FERRY.steps] == [1, 2, 1]


def test_a_machine_that_lost_its_claim_commits_nothing(machine: Machine) -> None:
    """Fencing: whoever was only slow, not dead, finds its claim gone, and its result with it."""
    slow_is_inside, slow_may_return = threading.Event(), threading.Event()

    def slow(ctx: ActivityContext) -> str:
        slow_is_inside.set()
        assert slow_may_return.wait(30)
        return "the slow machine's result"

    plan = Plan("tutorial.race", queue="tutorial", steps=["run"])
    first = machine(Definition(plan, steps={"run": Step(slow)}))
    second = machine(Definition(plan, steps={"run": Step(lambda _: "the second's result")}))
    started = first.start_or_resume(plan, biz_key="race:1")
    running = threading.Thread(target=first.drain, args=(["tutorial"],))
    running.start()
    assert slow_is_inside.wait(30)

    TimeShift(second).advance(seconds=3600)  # to the second machine the lease is long over
    assert run_until_idle(second, ["tutorial"]) == 1
    slow_may_return.set()
    running.join(30)

    assert not running.is_alive()
    assert second.get(started.workflow_id).output == {"run": "the second's result"}


def sail_and_sink(logbook: Path) -> None:
    """Be the doomed machine: its process ends inside the second step."""
    kernel = Kernel.connect(
        KernelConfig(
            mongo_url=os.environ["BATON_MONGO_URL"],
            redis_url=os.environ["BATON_REDIS_URL"],
            database=os.environ["BATON_DATABASE"],
            key_prefix=os.environ["BATON_KEY_PREFIX"],
            lease=LEASE,
        )
    )
    kernel.register(Ferry(logbook, sinks=True).definition())
    kernel.drain(queues=["tutorial"])


if __name__ == "__main__":
    sail_and_sink(Path(sys.argv[1]))
