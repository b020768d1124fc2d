"""A part of the boundaries is a fair one."""

from tests.crash.kills import How, When
from tests.crash.share import boundaries, kills


def test_few_boundaries_are_all_taken_and_so_are_all_when_asked() -> None:
    assert boundaries(5, 12, seed=3) == [1, 2, 3, 4, 5]
    assert boundaries(40, 0, seed=3) == list(range(1, 41))


def test_a_part_has_both_ends_and_is_as_large_as_asked_or_nearly() -> None:
    for commands in (13, 27, 106):
        for seed in range(50):
            part = boundaries(commands, 12, seed)
            assert (part[0], part[-1]) == (1, commands)
            assert 7 <= len(part) <= 12, (commands, part)


def test_the_parts_of_many_seeds_together_are_everything() -> None:
    for commands in (13, 27, 106):
        seen = {at for seed in range(commands) for at in boundaries(commands, 12, seed)}
        assert seen == set(range(1, commands + 1))


def test_a_part_meets_both_sides_and_both_ways() -> None:
    for seed in range(4):
        part = list(kills(27, 12, seed))
        assert {(kill.when, kill.how) for kill in part} == {(s, w) for s in When for w in How}
        assert (part[0].when, part[-1].when) == (When.BEFORE, When.AFTER)
