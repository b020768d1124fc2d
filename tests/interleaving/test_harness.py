"""The harness steps, repeats and judges as it says; a broken guard does not get past it."""

import random
from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import Any

import pytest

from kernel.protocol.commit import Commit, Guard
from kernel.store import capacity_pipelines, compiling, group_commits, instances
from tests.interleaving.cases import Case, run_case
from tests.interleaving.choices import Choices, Random, Scripted, every_order
from tests.interleaving.crowds import TAKEN_OVER, permit_crowd
from tests.interleaving.schedule import Process, Schedule
from tests.interleaving.search import search
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


def break_guards(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    whole: Callable[[Guard], dict[str, Any]] = compiling.compile_guard

    def broken(guard: Guard) -> dict[str, Any]:
        found = whole(guard)
        return {name: value for name, value in found.items() if not name.startswith(part)}

    for module in (instances, group_commits):
        monkeypatch.setattr(module, "compile_guard", broken)


@pytest.mark.parametrize("part", ["claim_token", "steps"])
def test_a_guard_without_a_part_of_it_is_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    break_guards(monkeypatch, part)
    found = []
    for seed in range(60):
        rng = random.Random(seed)
        outcome = run_case(stage, TAKEN_OVER[0], Random(rng, trouble=0.2))
        found += outcome.wrong
        if found:
            return
    raise AssertionError(f"nobody noticed that {part} was not compared; {Commit.__name__}")


def test_what_a_search_finds_is_told_as_short_as_it_gets(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_guards(monkeypatch, "claim_token")

    case = replace(TAKEN_OVER[0], of="one")

    def drawing(rng: random.Random) -> tuple[Case, Choices]:
        return case, Random(rng, trouble=0.05)

    found = search(stage, drawing, seed=1, orders=200)
    assert found.outcome is not None
    assert any("I4" in sentence for sentence in found.outcome.wrong)
    story = found.outcome.story
    assert not any("(" in line for line in story), "no trouble is needed for it"
    assert len(story) <= 16, "one takes over, the other one writes"


def _ever(*_: object) -> bool:
    return True


def _of_any_claim(records: str, *_: object) -> dict[str, Any]:
    return {"$filter": {"input": records, "as": "r", "cond": False}}


#: What of the permits' updates is broken: the function, and what it is instead.
_BROKEN: dict[str, Callable[..., Any]] = {
    "below": _ever,
    "is_open": _ever,
    "in_rate": _ever,
    "without": _of_any_claim,
}


@pytest.mark.parametrize("part", _BROKEN)
def test_a_permit_granted_against_the_rules_is_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(capacity_pipelines, part, _BROKEN[part])
    for seed in range(150):
        rng = random.Random(seed)
        if run_case(stage, permit_crowd(rng), Random(rng, trouble=0.03)).wrong:
            return
    raise AssertionError(f"nobody noticed that {part} was broken")


def test_a_place_that_nobody_hands_on_is_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = [*stage.kernels, stage.minder]
    for handing_on in (kernel._parts.permits.handing_on for kernel in kernels):
        monkeypatch.setattr(handing_on, "_let_go", lambda _: None)
    case = Case(
        of="gate", words={}, before=[("start", "1"), ("limit", "x:1"), ("die", "4")],
        actors=[("work", "")], instances=2,
    )  # fmt: skip
    assert any("I10" in sentence for sentence in run_case(stage, case, Scripted([])).wrong)
