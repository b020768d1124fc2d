"""The programs that prove something refuse a proof of nothing, and tell what they find."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from signal import SIGTERM
from types import SimpleNamespace
from typing import Any

import pytest

import tests.chaos.__main__ as chaos
import tests.crash.__main__ as crash
import tests.interleaving.__main__ as interleaving
import tests.mutants.__main__ as mutants
from tests.chaos import judge, run
from tests.crash.lab import Tally
from tests.kit import groups, servers
from tests.kit.processes import python_code
from tests.mutants.grinding import Result


@pytest.mark.parametrize(
    ("main", "arguments", "says"),
    [
        (chaos.main, "--seconds -1", "'-1' is no number"),
        (chaos.main, "--seconds 0", "not above 0"),
        (chaos.main, "--seconds nan", "'nan' is no number"),
        (chaos.main, "--workers 0", "0 is not 1 or more"),
        (chaos.main, "--rate 0", "not above 0"),
        (chaos.main, "--slots 0", "0 is not 1 to 32"),
        (crash.main, "linear --slots 33", "33 is not 1 to 32"),
        (crash.main, "linear --groups 0", "0 is not 1 to 1000"),
        (crash.main, "--jobs 0", "0 is not 1 or more"),
        (crash.main, "nonsense", "no scenario nonsense"),
        (interleaving.main, "--schedules -1", "'-1' is no whole number"),
        (interleaving.main, "--schedules 0 --no-pairs", "nothing would be proved"),
        (interleaving.main, "--slots 0", "0 is not 1 to 32"),
        (mutants.main, "--jobs x", "'x' is no whole number"),
        (mutants.main, "nonsense", "no mutant has one of the words"),
    ],
)
def test_a_proof_of_nothing_is_refused(
    main: Callable[[], int],
    arguments: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


class Lab:
    """Stands for a lab whose walks of one scenario find something, and of another break down."""

    def walk(self, scenario: str, when: str, _: object) -> Tally:
        if scenario == "dag":
            raise RuntimeError("the zygote ended")
        wrong = [f"{scenario}, killed {when} 7: gone"] if scenario == "linear" else []
        return Tally(boundaries=9, kills=9, violations=wrong)


@pytest.mark.parametrize(
    ("scenario", "status", "violations"), [("linear", 1, 2), ("dag", 1, 2), ("tick", 0, 0)]
)
def test_crash_tells_a_violation_and_what_repeats_it(
    scenario: str,
    status: int,
    violations: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def labs(_: int) -> Iterator[SimpleQueue[Any]]:
        queue: SimpleQueue[Any] = SimpleQueue()
        queue.put(Lab())
        yield queue

    monkeypatch.setattr(crash, "_labs", labs)
    monkeypatch.setattr(groups, "choose", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["program", scenario, "--jobs", "1", "--slots", "4"])
    assert crash.main() == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith(f" kills, {violations} violations")
    assert (f'repeat with make crash ARGS="{scenario} --slots 4"' in lines) == bool(violations)


@pytest.mark.parametrize("violations", [[], ["line:1 never ended"]])
def test_a_soak_tells_a_violation_its_seed_and_where_its_logs_are(
    violations: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fleet = SimpleNamespace(start_servers=dict, close=lambda: None, env={})
    monkeypatch.setattr(run, "Fleet", lambda *_, **__: fleet)
    monkeypatch.setattr(run, "_prepare", lambda: None)
    monkeypatch.setattr(run.Run, "_with_fleet", lambda *_: (violations, "chaos: the sum"))
    options = argparse.Namespace(
        seed=7, seconds=1.0, workers=1, children=1, slots=None, groups=None
    )
    folder = tmp_path / "soak"
    folder.mkdir()
    assert run.Run(options, folder).run() == len(violations)
    told = capsys.readouterr().out
    assert told.splitlines()[-1] == "chaos: the sum"
    assert (f"repeat with --seed 7; logs are in {folder}" in told) == bool(violations)
    assert folder.exists() == bool(violations)


def test_a_soak_that_accepted_nothing_is_wrong() -> None:
    assert judge._of_nothing([]) == ["nothing was accepted, so nothing is proved"]
    assert judge._of_nothing(["line:1"]) == []


@pytest.mark.parametrize("caught_by", [None, "tests/unit"])
def test_a_mutant_nobody_noticed_fails_the_run(
    caught_by: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def grind(found: Any, *, jobs: int) -> Iterator[Result]:
        for mutant in found:
            yield Result(mutant=mutant, caught_by=caught_by, test="t", seconds=float(jobs))

    monkeypatch.setattr(mutants, "grind", grind)
    monkeypatch.setattr(sys, "argv", ["program", "commit without token"])
    missed = caught_by is None
    assert mutants.main() == missed
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"mutants: 1 tried, {missed:d} not noticed"


def test_a_program_ended_from_outside_tidies_up_and_says_so() -> None:
    code = """
import time
from tests.kit.programs import run, say
def main():
    try:
        say("at work")
        time.sleep(60)
    finally:
        say("tidied up")
run(main)
"""
    with python_code(code) as child:
        child.wait_for_line("at work")
        child.send(SIGTERM)
        assert child.wait() == 130
        assert child.lines == ["at work", "tidied up", "interrupted: nothing is proved"]


def test_a_run_that_ends_before_it_has_servers_leaves_no_folder() -> None:
    code = "from tests.kit import servers; servers.lead_run(); print(servers.run_dir())"
    with python_code(code, env={servers.RUN_DIR: None, servers.LEADER: None}) as child:
        assert child.wait() == 0
        assert "baton-tests-" in child.output
        assert not Path(child.output.strip()).exists()
