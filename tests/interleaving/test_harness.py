"""The harness steps, repeats and judges as it says; a broken guard does not get past it."""

import random
from collections.abc import Callable
from math import comb
from typing import Any

import pytest

from kernel.protocol.commit import Commit, Guard
from kernel.store import compiling, group_commits, instances
from tests.interleaving.cases import TAKEN_OVER, Case, run_case
from tests.interleaving.choices import Random, Scripted, every_order
from tests.interleaving.schedule import Process, Schedule
from tests.interleaving.shards import drawn
from tests.interleaving.stage import Stage
from tests.interleaving.wire import Fate, Wire


def test_every_order_is_made_once() -> None:
    seen = set()
    for choices in every_order():
        order: list[str] = []

        def act(process: Process, order: list[str] = order) -> None:
            for _ in range(2):
                process.pause()
                order.append(process.name)

        processes = [Process("a"), Process("b")]
        for process in processes:
            process.act = lambda act=act, process=process: act(process)  # type: ignore[misc]
        Schedule(Wire(), choices, lambda _: None, lambda *_: None).run(processes)
        assert tuple(choices.taken) not in seen
        seen.add(tuple(choices.taken))
    assert len(seen) == comb(6, 3)


def test_a_seed_makes_the_same_story_again(stage: Stage) -> None:
    for seed in range(5):
        stories = []
        for _ in range(2):
            case, choices = drawn(seed)
            stories.append(run_case(stage, case, choices).story)
        assert stories[0] == stories[1]
        assert stories[0]


def test_a_lost_answer_is_lost_for_the_driver_too(stage: Stage) -> None:
    case = Case(of="one", words={}, before=[("start", "1")], actors=[("work", "")])
    outcome = run_case(stage, case, Scripted([], {2: Fate.LOSE}))
    assert sum("(lose" in line for line in outcome.story) == 2
    assert sum("again" in line for line in outcome.story) == 1


def test_a_late_command_arrives_after_its_sender_has_gone_on(stage: Stage) -> None:
    case = Case(of="one", words={}, actors=[("start", "1")])
    outcome = run_case(stage, case, Scripted([], {1: Fate.LATE}))
    assert any("late, arrived" in line for line in outcome.story)
    assert outcome.wrong == []


@pytest.mark.parametrize("part", ["claim_token", "steps"])
def test_a_guard_without_a_part_of_it_is_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    whole: Callable[[Guard], dict[str, Any]] = compiling.compile_guard

    def broken(guard: Guard) -> dict[str, Any]:
        found = whole(guard)
        return {name: value for name, value in found.items() if not name.startswith(part)}

    for module in (instances, group_commits):
        monkeypatch.setattr(module, "compile_guard", broken)
    found = []
    for seed in range(60):
        rng = random.Random(seed)
        outcome = run_case(stage, TAKEN_OVER[0], Random(rng, trouble=0.2))
        found += outcome.wrong
        if found:
            return
    raise AssertionError(f"nobody noticed that {part} was not compared; {Commit.__name__}")
