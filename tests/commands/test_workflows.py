"""`manage.py workflows`: what it prints, which names it takes, how it exits."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs.models import ContentJob
from jobs.runtime import using_kernel
from jobs.services import content
from kernel import (
    ActivityContext,
    Definition,
    Kernel,
    KernelConfig,
    NonRetryable,
    Plan,
    Sleep,
    Step,
    WorkflowInstance,
)

PLAN = Plan("test.command", queue="content", steps=["first", "second"])


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def run(*arguments: str, terminal: bool = False) -> str:
    """Run the command and return what it wrote."""
    output = Terminal() if terminal else io.StringIO()
    call_command("workflows", *arguments, stdout=output)
    return output.getvalue()


def start(kernel: Kernel, name: str, second: Any = None) -> WorkflowInstance:
    """Run a two-step workflow; the second step does what it is told."""

    def first(ctx: ActivityContext) -> dict[str, Any]:
        return {}

    kernel.register(Definition(PLAN, steps={"first": Step(first), "second": Step(second or first)}))
    started = kernel.start_or_resume(PLAN, biz_key=f"test.command:{name}")
    kernel.drain(queues=["content"])
    return kernel.get(started.workflow_id)


def sleepy(ctx: ActivityContext) -> Sleep:
    return Sleep(3600)


def failing(ctx: ActivityContext) -> dict[str, Any]:
    raise NonRetryable("no \x1b[31msuch\nthing", code="gone")


def test_a_list_shows_status_and_reason_and_can_be_filtered(kernel: Kernel) -> None:
    done, asleep = start(kernel, "done"), start(kernel, "asleep", sleepy)
    text = run("list", "-o", "table")
    assert done.workflow_id in text
    assert asleep.workflow_id in text
    assert "timer" in text
    found = json.loads(run("list", "--status", "waiting", "--type", "test.command"))
    assert [item["workflow_id"] for item in found] == [asleep.workflow_id]
    assert len(json.loads(run("list", "--limit", "1"))) == 1
    assert run("list", "--type", "no.such", "-o", "table").strip() == "No workflows."


def test_show_has_steps_attempts_and_times(kernel: Kernel) -> None:
    failed = start(kernel, "failed", failing)
    text = run("show", failed.workflow_id, "-o", "table")
    for wanted in ("test.command:failed", "failed", "first", "second", "gone", "attempt 1"):
        assert wanted in text
    assert "\x1b" not in text
    shown = json.loads(run("show", failed.workflow_id, "-o", "json"))
    assert shown["steps"]["second"]["attempts"][0]["outcome"]
    assert shown["error"]["code"] == "gone"


def test_why_is_one_sentence_from_stored_facts(kernel: Kernel) -> None:
    asleep = start(kernel, "asleep", sleepy)
    sentence = run("why", asleep.workflow_id, "-o", "table").strip()
    assert "\n" not in sentence
    assert "timer" in sentence
    assert "second" in sentence
    facts = json.loads(run("why", asleep.workflow_id))
    assert (facts["reason"], facts["step"]) == ("timer", "second")


def test_workflow_id_biz_key_and_job_id_name_the_same_thing(kernel: Kernel) -> None:
    job = content.submit_job(
        tenant="acme", kind="article", source_url="https://example.org/", metadata={}
    )
    biz_key = ContentJob.objects.get().dispatch_biz_key or ""
    by_job = json.loads(run("show", job.pk))
    assert by_job["biz_key"] == biz_key
    assert json.loads(run("show", biz_key)) == by_job
    assert json.loads(run("show", by_job["workflow_id"])) == by_job


@pytest.mark.parametrize("name", ["wf_0", "job_0", "no:such:key", "x\x1b[2J", "é"])
@pytest.mark.parametrize("verb", ["show", "why"])
def test_an_unknown_name_exits_with_3(kernel: Kernel, verb: str, name: str) -> None:
    with pytest.raises(CommandError) as refused:
        run(verb, name)
    assert refused.value.returncode == 3
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("limit", ["0", "1001"])
def test_a_limit_out_of_bounds_exits_with_2(kernel: Kernel, limit: str) -> None:
    with pytest.raises(CommandError) as refused:
        run("list", f"--limit={limit}")
    assert refused.value.returncode == 2


def test_a_store_that_is_away_exits_with_4_and_a_sentence(
    transactional_db: None, impatient_store: None
) -> None:
    dead = Kernel.connect(
        KernelConfig(mongo_url="mongodb://127.0.0.1:1/?replicaSet=rs0", database="nowhere")
    )
    with using_kernel(dead), pytest.raises(CommandError) as refused:
        run("list")
    dead.close()
    assert refused.value.returncode == 4
    assert "\n" not in str(refused.value)


def test_colour_is_for_terminals_without_no_color(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(kernel, "done")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32mcompleted" in run("list", terminal=True)
    assert "\x1b" not in run("list", "-o", "table")
    monkeypatch.setenv("NO_COLOR", "1")
    on_terminal = run("list", terminal=True)
    assert "completed" in on_terminal
    assert "\x1b" not in on_terminal
