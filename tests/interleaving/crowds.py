"""Which cases there are: crowds drawn from a seed, pairs for every order, lives, takeovers.

Guarantees that a seed stands for one case. Leaves running and judging to `cases`.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

from tests.interleaving.cases import Actor, Case
from tests.interleaving.scripts import NEEDS, WORDS
from tests.interleaving.stage import PROCESSES


def crowd(rng: random.Random, *, most: int = 4) -> Case:
    """Draw a case: a type, what its steps do, how it was left, and two to `most` actors."""
    of = rng.choice(["one", "line", "long", "kept", "fan", "fan", "naf", "naf", "lax"])
    words: dict[str, Sequence[str]] = {
        step: rng.choices(WORDS, [4, 3, 2, 3, 3, 2, 2, 1], k=rng.choice([0, 1, 1, 2, 3]))
        for step in ("a", "b", "c")
    }
    words |= {kind: ["fail"] for kind in ("success", "failure") if rng.random() < 0.2}
    draws: list[Callable[[], Actor]] = [
        lambda: ("work", ""),
        lambda: ("work", ""),
        lambda: ("~work", ""),
        lambda: ("stop", str(rng.randrange(12))),
        lambda: ("start", str(rng.choice([1, 2, 2, 3]))),
        lambda: ("tell", f"{rng.choice('aab')}:{rng.choice('xxy')}"),
        lambda: ("tell", f"{rng.choice('aab')}:{rng.choice('xxy')}"),
        lambda: ("supersede", ""),
        lambda: (rng.choice(["tick", "~tick"]), ""),
        lambda: ("reconcile", ""),
        lambda: ("free", rng.choice(["", "nobody", "a", "b"])),
        lambda: ("renew", ""),
    ]
    before: list[Actor] = [("start", "1")] * (rng.random() < 0.9)
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        before += [("work", ""), ("time_passes", "")]
    actors = [("work", "")] if rng.random() < 0.8 else []
    while len(actors) < rng.randint(2, most):
        actors.append(rng.choice(draws)())
    if rng.random() < 0.5:
        actors.append(("time_passes", ""))
    return Case(of=of, words=words, before=before, actors=_one_id_each(actors)[:PROCESSES])


def _one_id_each(actors: Sequence[Actor]) -> list[Actor]:
    """A signal's id belongs to one wait: the name carries its step."""
    return [(role, f"{word}{word[0]}") if role == "tell" else (role, word) for role, word in actors]


def permit_crowd(rng: random.Random, *, most: int = 4) -> Case:
    """Draw a case of instances that share resources whose limits change while they run."""
    of = rng.choice(list(NEEDS))
    letters = sorted(set("".join(NEEDS[of].values())))
    often = ["ok", "fail", "fatal", "sleep", "yield", "cancel", "full", "wait"]
    words = {
        step: rng.choices(often, [6, 3, 1, 2, 3, 1, 2, 1], k=rng.choice([0, 0, 1, 2]))
        for step in ("a", "b", "c")
    }

    def letter() -> str:
        return rng.choice(letters)

    def limit() -> Actor:
        one = letter()
        most = rng.choice([0, 1]) if one == "r" else rng.choice([0, 1, 1, 2])
        return "limit", f"{one}:{most}{rng.choice(['', '', '!'])}"

    draws: list[Callable[[], Actor]] = [
        lambda: ("work", ""),
        lambda: ("work", ""),
        lambda: ("work", ""),
        lambda: ("~work", ""),
        limit,
        lambda: (rng.choice(["pause", "resume", "cool"]), letter()),
        lambda: (rng.choice(["tick", "reconcile"]), ""),
        lambda: ("reconcile", ""),
        lambda: ("free", rng.choice(["", "nobody", "a", "b"])),
        lambda: ("renew", ""),
        lambda: ("supersede", ""),
        lambda: ("stop", str(rng.randrange(12))),
        lambda: ("start", "2"),
    ]
    before = [("start", "1"), *(_first_limit(rng, one) for one in letters)]
    for _ in range(rng.choice([0, 0, 1, 2])):
        left = rng.choice([("work", ""), ("die", str(rng.randint(2, 9)))])
        before += [left] if rng.random() < 0.6 else [left, ("time_passes", "")]
    actors: list[Actor] = [("work", "")]
    while len(actors) < rng.randint(2, most):
        actors.append(rng.choice(draws)())
    if rng.random() < 0.4:
        actors.append(("time_passes", ""))
    return Case(
        of=of,
        words=words,
        before=before,
        actors=actors[:PROCESSES],
        instances=rng.choice([2, 2, 3]),
    )


def _first_limit(rng: random.Random, letter: str) -> Actor:
    return "limit", f"{letter}:{1 if letter == 'r' else rng.choice([1, 1, 2])}"


_WORK, _TELL, _END, _LATER = ("work", ""), ("tell", "a:x"), ("supersede", ""), ("time_passes", "")
_LEFT_ = tuple[str, Mapping[str, Sequence[str]], list[Actor], list[Actor]]
#: How an instance was left: type, words, what was done before, and who may come now.
_LEFT: dict[str, _LEFT_] = {
    "absent": ("one", {}, [], [("start", "1"), ("start", "2"), _TELL, _END]),
    "fresh": ("one", {}, [("start", "1")], [_WORK, ("start", "1"), _END, _LATER]),
    "waiting": (
        "one",
        {"a": ["poll"]},
        [("start", "1"), _WORK, _LATER],
        [_TELL, ("~tick", ""), _END],
    ),
    "failing": (
        "kept",
        {"a": ["fatal"], "failure": ["fail"]},
        [("start", "1"), _WORK],
        [_WORK, ("free", ""), ("start", "2"), _LATER],
    ),
    "failed": ("one", {"a": ["fatal"]}, [("start", "1"), _WORK], [("start", "1"), ("start", "2")]),
}
_LIMITED: list[Actor] = [("start", "1"), ("limit", "x:1")]
#: The same of two instances that share a resource: one free, one held by a dead claim, one with a
#: waiter in line, one that is closed.
_LEFT_LIMITED: dict[str, _LEFT_] = {
    "limited": ("gate", {}, _LIMITED, [_WORK, ("limit", "x:0"), ("pause", "x"), _END]),
    "held": (
        "gate",
        {},
        [*_LIMITED, ("die", "4")],
        [_WORK, ("reconcile", ""), ("free", ""), ("renew", ""), _LATER, _END],
    ),
    "lined": (
        "gate",
        {},
        [*_LIMITED, ("die", "4"), _WORK],
        [("tick", ""), ("reconcile", ""), ("limit", "x:2"), ("free", ""), _LATER, _END],
    ),
    "paused": (
        "both",
        {},
        [*_LIMITED, ("pause", "x"), _WORK],
        [_WORK, ("tick", ""), ("resume", "x"), ("limit", "x:2")],
    ),
}


def pairs(left: str | None = None) -> Iterator[Case]:
    """Yield every two short operations on an instance left in every way, or in one."""
    yield from _pairs(_LEFT, left, instances=1)


def permit_pairs(left: str | None = None) -> Iterator[Case]:
    """Yield the same for two instances that share resources."""
    yield from _pairs(_LEFT_LIMITED, left, instances=2)


def _pairs(ways: Mapping[str, _LEFT_], left: str | None, *, instances: int) -> Iterator[Case]:
    for name, (of, words, before, actors) in ways.items():
        for one, other in combinations_with_replacement(actors, 2):
            if left in (None, name) and (one, other) != (_LATER, _LATER):
                yield Case(
                    of=of, words=words, before=before, actors=[one, other], instances=instances
                )


#: Whole lives of one worker beside nobody, to trouble each of their commands in every way.
LIVES = [
    Case(of=of, words=words, before=[("start", "1")], actors=[("work", ""), ("tell", "b:x")])
    for of, words in (
        ("long", {"a": ["fail"], "b": ["yield"]}),
        ("kept", {"a": ["sleep"]}),
        ("kept", {"b": ["fatal"], "failure": ["fail"]}),
        ("lax", {"a": ["fatal"], "b": ["cancel"]}),
        ("fan", {"a": ["fatal"], "b": ["wait"]}),
        ("naf", {"a": ["wait"], "b": ["cancel"]}),
        ("naf", {"a": ["cancel"], "b": ["wait"]}),
        ("fan", {"a": ["yield"], "b": ["poll"]}),
    )
]

#: A holder that is slow, and another one that comes when its lease is over.
TAKEN_OVER = [
    Case(
        of=of,
        words=words,
        before=[("start", "1")],
        actors=[("work", ""), ("work", ""), ("time_passes", "")],
    )
    for of, words in (
        ("line", {}),
        ("line", {"a": ["yield", "fail"]}),
        ("kept", {"a": ["fatal"], "failure": ["fail"]}),
        ("kept", {"success": ["fail"]}),
        ("fan", {"a": ["yield"], "b": ["poll"]}),
        ("fan", {"b": ["cancel"]}),
    )
]

#: Groups whose claims go to others half-way, or are taken by two at once.
_GROUPED = [
    [("~work", ""), ("~work", ""), ("time_passes", "")],
    [("~work", ""), ("work", ""), ("free", "nobody")],
    [("~work", ""), ("supersede", "")],
    [("~work", ""), ("~work", "")],
]


def grouped(rng: random.Random) -> Case:
    """Draw a case of claims taken and committed in groups, of which some are lost."""
    words = {"a": rng.choices(["ok", "yield", "fail"], k=rng.choice([0, 1, 2]))}
    of = rng.choice(["line", "long", "kept", "fan"])
    return Case(of=of, words=words, before=[("start", "1")], actors=rng.choice(_GROUPED))


def in_part(rng: random.Random, case: Case) -> Case:
    """Let a part of a worker's claims take part in a case."""
    return replace(case, part=rng.choice([0.1, 0.25, 0.25, 1.0]))
