"""What holds for every script of lua/: declared keys, one slot, and headers that say enough."""

from __future__ import annotations

import re

import pytest

from kernel.hints.scripts import LUA_FOLDER, Scripts, load_scripts
from tests.lua.lanes import Lanes

SCRIPTS = load_scripts()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_header_tells_keys_arguments_answers_cost_and_repeat(name: str) -> None:
    header = SCRIPTS[name].source.split("\n\n", 1)[0]
    assert all(line.startswith("--") for line in header.splitlines())
    for part in ("KEYS[1", "ARGV[1]", "Returns", "Cost", "On repeat"):
        assert part in header


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_command_names_a_declared_key(name: str) -> None:
    calls = re.findall(r"redis\.p?call\(\s*'(\w+)'\s*(?:,\s*([^,)\s]+))?", SCRIPTS[name].source)
    assert calls
    for command, first_argument in calls:
        assert command == "TIME" or first_argument.startswith("KEYS["), (command, first_argument)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_tests_of_its_own(name: str) -> None:
    assert (LUA_FOLDER.parent / "tests" / "lua" / f"test_{name}.py").exists()


def test_a_flush_between_any_two_calls_goes_unnoticed(lanes: Lanes, scripts: Scripts) -> None:
    lanes.client.script_flush()
    assert lanes.push("wf_a", 1, 5) == "added"
    lanes.client.script_flush()
    assert lanes.pop() == ("wf_a", 1, 5)
    lanes.client.script_flush()
    assert lanes.pop() is None


def test_a_missing_script_runs_once_not_twice(lanes: Lanes) -> None:
    lanes.fill(1, 2)
    lanes.client.script_flush()
    assert lanes.pop() is not None
    assert lanes.client.zcard(lanes.keys.lanes[1]) == 1
