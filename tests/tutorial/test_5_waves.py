"""Chapter 5, waves: steps that do not depend on each other run side by side."""

import threading

from kernel import ActivityContext, Definition, Plan, Step
from kernel.testing import run_until_idle
from tests.tutorial.conftest import Machine

MEAL = Plan(
    "tutorial.meal",
    queue="tutorial",
    steps=["soup", "salad", "serve"],
    depends_on={"soup": [], "salad": [], "serve": ["soup", "salad"]},
)


def test_independent_steps_run_at_the_same_time(machine: Machine) -> None:
    """All ready steps form a wave; the next one begins when the last of them has come home."""
    together = threading.Barrier(2, timeout=10)

    def cook(ctx: ActivityContext) -> str:
        together.wait()  # passes only if both steps are inside at once
        return f"hot {ctx.step}"

    def serve(ctx: ActivityContext) -> list[str]:
        return [ctx.output("soup"), ctx.output("salad")]

    kernel = machine(
        Definition(MEAL, steps={"soup": Step(cook), "salad": Step(cook), "serve": Step(serve)})
    )
    started = kernel.start_or_resume(MEAL, biz_key="meal:1")
    run_until_idle(kernel, ["tutorial"])

    assert kernel.get(started.workflow_id).output["serve"] == ["hot soup", "hot salad"]


def test_a_failed_step_does_not_throw_away_its_siblings_work(machine: Machine) -> None:
    """The sibling comes home and keeps its output; a new round runs the failed step alone."""
    cooked: list[tuple[str, int]] = []

    def cook(ctx: ActivityContext) -> str:
        cooked.append((ctx.step, ctx.fencing_token))
        if ctx.step == "salad" and ctx.fencing_token == 1:
            raise ValueError("no lettuce")
        return ctx.step

    kernel = machine(
        Definition(MEAL, steps={"soup": Step(cook), "salad": Step(cook), "serve": Step(cook)})
    )
    for fencing_token in (1, 2):
        started = kernel.start_or_resume(MEAL, biz_key="meal:2", fencing_token=fencing_token)
        run_until_idle(kernel, ["tutorial"])

    assert sorted(cooked) == [("salad", 1), ("salad", 2), ("serve", 2), ("soup", 1)]
    assert kernel.get(started.workflow_id).status == "completed"
