"""Chapter 4, waiting: a step that waits holds no worker, no thread and no attempt."""

from kernel import ActivityContext, Definition, Plan, Sleep, Step, Yield
from kernel.testing import TimeShift, run_until_idle
from tests.tutorial.conftest import Machine

TRANSCRIBE = Plan("tutorial.transcribe", queue="tutorial", steps=["transcribe"])


def test_a_step_sleeps_and_finds_its_checkpoint_when_it_wakes(machine: Machine) -> None:
    """Return `Sleep` with a checkpoint: submit once, look again later, on whatever machine."""
    submitted: list[str] = []

    def transcribe(ctx: ActivityContext) -> Sleep | str:
        if ctx.checkpoint is None:
            submitted.append(ctx.idempotency_key)
            return Sleep(3600, checkpoint={"job": "speech-7"})
        assert ctx.resume is not None
        return f"{ctx.checkpoint['job']} woken by {ctx.resume.kind}, attempt {ctx.attempt}"

    definition = Definition(TRANSCRIBE, steps={"transcribe": Step(transcribe)})
    kernel, other = machine(definition), machine(definition)
    started = kernel.start_or_resume(TRANSCRIBE, biz_key="speech:1")
    run_until_idle(kernel, ["tutorial"])
    assert kernel.get(started.workflow_id).status == "waiting"
    assert run_until_idle(other, ["tutorial"]) == 0

    TimeShift(other).advance(seconds=3601)
    run_until_idle(other, ["tutorial"])

    assert len(submitted) == 1
    output = other.get(started.workflow_id).output
    assert output == {"transcribe": "speech-7 woken by timer, attempt 1"}


def test_a_waiting_workflow_says_what_it_waits_for(machine: Machine) -> None:
    """`why` answers from stored facts: the reason, the step, since when and until when."""
    definition = Definition(TRANSCRIBE, steps={"transcribe": Step(lambda _: Sleep(3600))})
    kernel = machine(definition)
    started = kernel.start_or_resume(TRANSCRIBE, biz_key="speech:2")
    assert kernel.why(started.workflow_id).reason == "lane_backlog"
    run_until_idle(kernel, ["tutorial"])

    why = kernel.why(started.workflow_id)

    assert (why.status, why.reason, why.step) == ("waiting", "timer", "transcribe")
    assert why.since is not None
    assert why.until is not None
    assert round((why.until - why.since).total_seconds()) == 3600
    assert "transcribe" in why.sentence


def test_long_work_lets_others_go_first(machine: Machine) -> None:
    """`Yield` stores how far the work has come and goes to the end of its lane."""

    def transcribe(ctx: ActivityContext) -> Yield | int:
        page = (ctx.checkpoint or 0) + 1
        return page if page == 4 else Yield(checkpoint=page)

    kernel = machine(Definition(TRANSCRIBE, steps={"transcribe": Step(transcribe)}))
    started = kernel.start_or_resume(TRANSCRIBE, biz_key="speech:3")

    claims = run_until_idle(kernel, ["tutorial"])

    assert claims == 4
    done = kernel.get(started.workflow_id)
    assert (done.output["transcribe"], done.steps["transcribe"].attempt) == (4, 1)
