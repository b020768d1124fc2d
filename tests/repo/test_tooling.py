"""One command does each thing, and continuous integration calls the same commands."""

import os
import re
import subprocess

from tests.kit import order
from tests.repo.sources import ROOT

TARGETS = {
    "setup",
    "demo",
    "up",
    "test",
    "chaos",
    "crash",
    "interleave",
    "mutants",
    "soak",
    "capacity",
    "check",
    "lint",
    "format",
    "bench",
    "profile",
    "lock",
    "clean",
}


def test_bare_make_lists_every_target_with_its_help() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    listed = subprocess.run(
        ["make", "--no-print-directory"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    shown = dict(re.findall(r"^  make ([a-z]+)\s+(\S.*)$", listed, flags=re.MULTILINE))
    assert set(shown) - {"help"} == TARGETS


def test_recipes_leave_the_shells_own_clock_alone() -> None:
    assert not re.search(r"\bSECONDS\b", (ROOT / "Makefile").read_text(encoding="utf-8"))


def test_integration_runs_the_same_commands_as_people_do() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    assert re.findall(r"^make (\w+)", text, flags=re.MULTILINE) == ["check", "crash", "test"]


def test_what_the_stack_writes_is_ignored() -> None:
    written = [".data/mongo/mongod.log", ".venv/bin/python", "celerybeat-schedule.dat"]
    done = subprocess.run(
        ["git", "check-ignore", *written], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == written


def test_what_tests_begin_with_is_there() -> None:
    assert [name for name in order.FIRST if not (ROOT / name).exists()] == []
    places = [order.place(ROOT / name, ROOT) for name in (*order.FIRST, "tests/unit/test_plan.py")]
    assert places == list(range(len(order.FIRST) + 1))
    assert order.place(ROOT / "tests/trust/test_bell.py", ROOT) == order.FIRST.index("tests/trust")
