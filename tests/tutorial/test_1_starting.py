"""Chapter 1, starting: a plan, activities, a definition, and one start for ever."""

from kernel import ActivityContext, Definition, Kernel, Plan, Step
from tests.tutorial.conftest import Machine

# A plan names the steps. Whoever publishes work imports it; it holds no activity code.
GREET = Plan("tutorial.greet", queue="tutorial", steps=["look_up", "greet"])


# Activities do the work. Each gets a context and returns a small JSON value: the step's output.
def look_up(ctx: ActivityContext) -> dict[str, str]:
    return {"name": ctx.input["name"].title()}


def greet(ctx: ActivityContext) -> dict[str, str]:
    return {"text": f"Hello, {ctx.output('look_up')['name']}!"}


# A definition joins the two. Only workers need it.
GREETING = Definition(GREET, steps={"look_up": Step(look_up), "greet": Step(greet)})


def start(kernel: Kernel, *, biz_key: str = "greet:42", name: str = "ada") -> None:
    kernel.start_or_resume(GREET, biz_key=biz_key, input={"name": name})


def test_a_started_workflow_runs_its_steps_and_keeps_their_outputs(machine: Machine) -> None:
    """`drain` runs what is due; the instance remembers what each step gave."""
    kernel = machine(GREETING)
    started = kernel.start_or_resume(GREET, biz_key="greet:42", input={"name": "ada"})
    assert (started.activated, started.accepted, started.reason) == (True, True, "created")

    assert kernel.drain(queues=["tutorial"]) == 1

    done = kernel.get(started.workflow_id)
    assert done.status == "completed"
    assert done.output == {"look_up": {"name": "Ada"}, "greet": {"text": "Hello, Ada!"}}


def test_starting_again_finds_the_same_instance(machine: Machine) -> None:
    """One biz_key is one instance: repeat a start as often as you like, nothing runs twice."""
    kernel = machine(GREETING)
    first = kernel.start_or_resume(GREET, biz_key="greet:42", input={"name": "ada"})
    kernel.drain(queues=["tutorial"])

    again = kernel.start_or_resume(GREET, biz_key="greet:42", input={"name": "ada"})

    assert (again.activated, again.accepted, again.reason) == (False, True, "registered")
    assert again.workflow_id == first.workflow_id
    assert kernel.drain(queues=["tutorial"]) == 0


def test_any_machine_may_run_what_another_one_started(machine: Machine) -> None:
    """A publisher needs the plan only; the facts are in MongoDB, so every worker can carry on."""
    publisher, worker = machine(), machine(GREETING)
    publisher.register_plan(GREET)

    start(publisher)
    assert publisher.drain(queues=["tutorial"]) == 0

    assert worker.drain(queues=["tutorial"]) == 1
    finished = publisher.find(biz_key="greet:42")
    assert finished is not None
    assert finished.status == "completed"
