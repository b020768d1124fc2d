"""`manage.py capacity`: what it prints, what it changes, how it exits."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs.management.commands import capacity
from jobs.runtime import using_kernel
from kernel import ActivityContext, Definition, Kernel, KernelConfig, Plan, Step

PLAN = Plan("test.limited", queue="content", steps=["one"])
WHY = ("--reason", "the provider asked")


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def run(*arguments: str, terminal: bool = False) -> str:
    output = Terminal() if terminal else io.StringIO()
    call_command("capacity", *arguments, stdout=output)
    return output.getvalue()


def shown(*arguments: str) -> Any:
    return json.loads(run(*arguments))


def test_a_limit_is_set_shown_and_explained_in_the_history(kernel: Kernel) -> None:
    run("set", "psp", "--max-concurrency", "8", "--max-starts-per-second", "0.5", *WHY)
    status = kernel.capacity.status("psp")
    assert (status.max_concurrency, status.max_starts_per_second) == (8, 0.5)
    run("set", "psp", "--max-concurrency", "4", *WHY, "--by", "ada")
    status = kernel.capacity.status("psp")
    assert (status.max_concurrency, status.max_starts_per_second) == (4, 0.5)
    assert (status.history[-1].by, status.history[-1].reason) == ("ada", "the provider asked")
    sheet = run("show", "psp", terminal=True)
    assert "max concurrency" in sheet
    assert "the provider asked" in sheet
    run("set", "psp", "--max-concurrency", "0", "--max-starts-per-second", "0", *WHY)
    assert "unlimited" in run("show", "psp", terminal=True)


def test_a_list_that_is_cut_says_so(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.capacity.set_limit("psp", max_concurrency=8)
    monkeypatch.setattr(capacity, "_LIST_MAX", 2)
    assert [one["resource"] for one in shown("list")] == ["content_generation", "psp"]
    assert capsys.readouterr().err == "… and 2 more behind psp\n"
    monkeypatch.setattr(capacity, "_LIST_MAX", 4)
    assert len(shown("list")) == 4
    assert capsys.readouterr().err == ""


def test_the_list_names_what_steps_use_and_what_was_set(kernel: Kernel) -> None:
    run("set", "psp", "--max-concurrency", "8", *WHY)
    listing = run("list", terminal=True)
    for name in ("psp", "web_crawler", "speech_recognition", "content_generation"):
        assert name in listing
    assert [one["resource"] for one in shown("list")] == [
        "content_generation",
        "psp",
        "speech_recognition",
        "web_crawler",
    ]


def test_a_paused_resource_lets_nothing_start_until_it_is_resumed(kernel: Kernel) -> None:
    def one(_: ActivityContext) -> dict[str, Any]:
        return {}

    kernel.register(Definition(PLAN, steps={"one": Step(one, traffic_resource="psp")}))
    run("pause", "psp", *WHY)
    started = kernel.start_or_resume(PLAN, biz_key="test.limited:1")
    kernel.drain(queues=["content"])
    sheet = run("show", "psp", terminal=True)
    assert "paused" in sheet
    assert started.workflow_id in sheet
    assert shown("show", "psp")["waiters"][0]["position"] == 1
    run("resume", "psp", *WHY)
    kernel.tick()
    kernel.drain(queues=["content"])
    assert kernel.get(started.workflow_id).status == "completed"
    assert shown("show", "psp")["waiting"] == 0


def test_a_cooldown_and_an_override_say_when_they_end(kernel: Kernel) -> None:
    assert "cooldown" in run("cooldown", "psp", "--seconds", "90", *WHY, terminal=True)
    sheet = run(
        "set", "crawl", "--max-concurrency", "2", "--expires-in", "600", *WHY, terminal=True
    )
    assert "override ends in" in sheet


def test_a_change_of_what_somebody_else_has_changed_is_refused(kernel: Kernel) -> None:
    run("set", "psp", "--max-concurrency", "8", *WHY)
    revision = kernel.capacity.status("psp").revision
    run("pause", "psp", *WHY)
    with pytest.raises(CommandError) as refused:
        run("set", "psp", "--max-concurrency", "9", *WHY, "--if-revision", str(revision))
    assert refused.value.returncode == 5
    assert kernel.capacity.status("psp").max_concurrency == 8


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "psp", *WHY),
        ("set", "psp", "--max-concurrency", "8"),
        ("set", "psp", "--max-concurrency", "8", "--reason", "  "),
        ("set", "psp", "--max-concurrency", "-1", *WHY),
        ("set", "psp", "--max-concurrency", "1.5", *WHY),
        ("set", "psp", "--max-concurrency", "999999999", *WHY),
        ("set", "psp", "--max-starts-per-second", "nan", *WHY),
        ("set", "psp", "--max-starts-per-second", "inf", *WHY),
        ("set", "psp", "--max-starts-per-second", "-1", *WHY),
        ("set", "psp", "--max-starts-per-second", "1e300", *WHY),
        ("set", "psp", "--max-concurrency", "8", "--expires-in", "0", *WHY),
        ("cooldown", "psp", *WHY),
        ("cooldown", "psp", "--seconds", "1e300", *WHY),
        ("pause", "no name\n", *WHY),
        ("explode", "psp"),
    ],
)
def test_a_wrong_call_changes_nothing_and_says_what_to_write(
    kernel: Kernel, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    # Django's own parser raises where a shell would see status 2.
    assert refused.value.returncode in {1, 2}
    assert "Traceback" not in str(refused.value)
    assert kernel.capacity.status("psp").revision == 0


def test_without_the_store_the_command_says_so(kernel: Kernel, impatient_store: None) -> None:
    url = "mongodb://127.0.0.1:1/?replicaSet=rs0"
    away = Kernel.connect(KernelConfig(mongo_url=url, database="nowhere"))
    try:
        with using_kernel(away):
            with pytest.raises(CommandError) as refused:
                run("pause", "psp", *WHY)
            assert refused.value.returncode == 4
    finally:
        away.close()
