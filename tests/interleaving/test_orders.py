"""A part of the orders that `make interleave` runs; BATON_SCHEDULES says how many are drawn."""

import os
import random
import secrets
import sys

import pytest

from tests.interleaving.cases import Case, run_case
from tests.interleaving.choices import Choices, Random, Scripted, every_order
from tests.interleaving.crowds import LIVES, TAKEN_OVER, pairs, permit_crowd, permit_pairs
from tests.interleaving.search import search
from tests.interleaving.shards import drawn, drawn_by, told
from tests.interleaving.stage import Stage
from tests.interleaving.wire import Fate


def no_violation(stage: Stage, name: str, case: Case, choices: Choices) -> None:
    outcome = run_case(stage, case, choices)
    assert not outcome.wrong, told(name, case, outcome)


@pytest.mark.parametrize("life", LIVES, ids=str)
def test_no_lost_answer_in_the_life_of_a_worker_does_harm(stage: Stage, life: Case) -> None:
    whole = Scripted([])
    no_violation(stage, "untroubled", life, whole)
    for at in range(1, whole.commands + 1):
        no_violation(stage, f"command {at} lost", life, Scripted([], {at: Fate.LOSE}))


@pytest.mark.parametrize("life", LIVES[-4:], ids=str)
def test_no_death_in_a_wave_does_harm(stage: Stage, life: Case) -> None:
    whole = Scripted([])
    no_violation(stage, "untroubled", life, whole)
    for at in range(1, whole.commands + 1):
        no_violation(stage, f"died after {at}", life, Scripted([], {at: Fate.DIE_AFTER}))


@pytest.mark.parametrize("left", ["absent", "fresh"])
def test_every_order_of_two_short_operations_is_right(stage: Stage, left: str) -> None:
    for case in pairs(left):
        for choices in every_order():
            no_violation(stage, f"order {[turn for turn, _ in choices.taken]}", case, choices)


@pytest.mark.parametrize("left", ["limited", "held", "lined", "paused"])
def test_two_who_meet_at_a_resource_keep_its_limit(stage: Stage, left: str) -> None:
    for seed, case in enumerate(permit_pairs(left)):
        order = Random(random.Random(seed), trouble=0.0)
        no_violation(stage, f"seed {seed}", case, order)


def test_drawn_crowds_at_resources_keep_their_limits(stage: Stage) -> None:
    first = int(os.environ.get("BATON_SEED") or secrets.randbits(31))
    for seed in range(first, first + 12):
        rng = random.Random(seed)
        case = permit_crowd(rng)
        no_violation(stage, f"BATON_SEED={seed}", case, Random(rng, trouble=0.06 * (seed % 2)))


@pytest.mark.parametrize("case", TAKEN_OVER, ids=str)
def test_a_holder_that_is_taken_over_changes_nothing_any_more(stage: Stage, case: Case) -> None:
    for seed in range(12):
        trouble = 0.05 * (seed % 3)
        order = Random(random.Random(seed), trouble=trouble)
        no_violation(stage, f"seed {seed}, trouble {trouble}", case, order)


def test_drawn_orders_of_drawn_crowds_are_right(stage: Stage) -> None:
    _draw(stage, int(os.environ.get("BATON_SCHEDULES", "40")))


def test_drawn_orders_of_grouped_commits_are_right(wide_stage: Stage) -> None:
    _draw(wide_stage, int(os.environ.get("BATON_SCHEDULES", "40")) // 4)


def test_a_search_of_crowds_finds_no_wrong_order(stage: Stage) -> None:
    seed = int(os.environ.get("BATON_SEED") or secrets.randbits(31))
    orders = int(os.environ.get("BATON_SCHEDULES", "40")) // 4
    found = search(stage, drawn_by, seed=seed, orders=orders)
    assert found.looked_at == orders
    if found.case is not None and found.outcome is not None:
        raise AssertionError(told(f"BATON_SEED={seed}", found.case, found.outcome))


def _draw(stage: Stage, count: int) -> None:
    first = int(os.environ.get("BATON_SEED") or secrets.randbits(31))
    for seed in range(first, first + count):
        sys.stdout.write(f"SEED={seed}\n")
        case, choices = drawn(seed, slots=stage.slots)
        no_violation(stage, f"SEED={seed} SCHEDULES=1", case, choices)
