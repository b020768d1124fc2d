"""Chapter 3, rounds: after a failure the business asks again, and only what failed runs again."""

from kernel import ActivityContext, Definition, Plan, Step
from kernel.testing import run_until_idle
from tests.tutorial.conftest import Machine

PRINT = Plan("tutorial.print", queue="tutorial", steps=["typeset", "print_it"])


class Press:
    """Two activities that note their calls; printing jams in the first round."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.keys: list[tuple[str, str]] = []

    def typeset(self, ctx: ActivityContext) -> str:
        self.calls.append(("typeset", ctx.fencing_token))
        return "pages"

    def print_it(self, ctx: ActivityContext) -> str:
        self.calls.append(("print_it", ctx.fencing_token))
        self.keys.append((ctx.idempotency_key, ctx.operation_key))
        if ctx.fencing_token == 1:
            raise RuntimeError("paper jam")
        return "a book"

    def definition(self) -> Definition:
        return Definition(
            PRINT, steps={"typeset": Step(self.typeset), "print_it": Step(self.print_it)}
        )


def test_a_new_round_repeats_only_what_failed(machine: Machine) -> None:
    """A higher fencing_token replays a failed instance; a completed step never runs again."""
    press = Press()
    kernel = machine(press.definition())
    kernel.start_or_resume(PRINT, biz_key="print:1", fencing_token=1)
    run_until_idle(kernel, ["tutorial"])

    again = kernel.start_or_resume(PRINT, biz_key="print:1", fencing_token=2)
    run_until_idle(kernel, ["tutorial"])

    assert (again.activated, again.reason) == (True, "replayed")
    assert press.calls == [("typeset", 1), ("print_it", 1), ("print_it", 2)]
    assert kernel.get(again.workflow_id).status == "completed"


def test_the_round_is_part_of_the_idempotency_key_and_not_of_the_operation_key(
    machine: Machine,
) -> None:
    """idempotency_key: once a round. operation_key: once for ever, whatever the user retries."""
    press = Press()
    kernel = machine(press.definition())
    for fencing_token in (1, 2):
        kernel.start_or_resume(PRINT, biz_key="print:2", fencing_token=fencing_token)
        run_until_idle(kernel, ["tutorial"])

    (first_round, first_ever), (second_round, second_ever) = press.keys
    assert first_round != second_round
    assert first_ever == second_ever


def test_a_late_registration_of_an_old_round_changes_nothing(machine: Machine) -> None:
    """The fencing_token is an order: who comes late with an old number is told so, and drops it."""
    press = Press()
    kernel = machine(press.definition())
    for fencing_token in (1, 2):
        kernel.start_or_resume(PRINT, biz_key="print:3", fencing_token=fencing_token)
        run_until_idle(kernel, ["tutorial"])

    late = kernel.start_or_resume(PRINT, biz_key="print:3", fencing_token=1)

    assert (late.activated, late.accepted, late.reason) == (False, False, "stale_round")
    assert kernel.get(late.workflow_id).fencing_token == 2
