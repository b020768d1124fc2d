"""Who meets whom: one case is an instance as it was left, and actors who act on it at once.

`crowd` draws a case from a seed; `PAIRS` are two short operations each, for every order. Guarantees
that a case is judged whole: each change while it ran, the end it is brought to, what activities
saw, what became of every signal. Leaves the order of commands to `choices`.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

from kernel import InstanceStatus, StartResult, StepStatus, workflow_id_of
from kernel.verifying import of_instance
from tests.interleaving.choices import Choices
from tests.interleaving.roles import ROLES
from tests.interleaving.schedule import Process
from tests.interleaving.scripts import WORDS, Script
from tests.interleaving.stage import PROCESSES, Run, Stage

#: An actor: its role and the role's word; with `~` in front, its hints lie.
Actor = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one schedule is about; `before` is done in order, by the first process, untroubled."""

    of: str
    words: Mapping[str, Sequence[str]]
    before: Sequence[Actor] = ()
    actors: Sequence[Actor] = ()

    def __str__(self) -> str:
        acts = [" ".join(filter(None, actor)) for actor in self.actors]
        left = [" ".join(filter(None, actor)) for actor in self.before]
        words = " ".join(f"{step}={','.join(said)}" for step, said in self.words.items())
        return f"{self.of} [{words}] after {', '.join(left)}: {' | '.join(acts)}"


@dataclass(slots=True)
class Outcome:
    """What a schedule came to: what was wrong, and its story."""

    wrong: list[str]
    story: list[str] = field(default_factory=list)


def run_case(stage: Stage, case: Case, choices: Choices) -> Outcome:
    """Run one schedule of a case to its end and judge it."""
    run = stage.begin(case.of, [Script(case.words) for _ in range(stage.slots)])
    _do_before(stage, run, case)
    processes = []
    for number, (role, word) in enumerate(case.actors):
        kernel = stage.kernels[number]
        stage.hint(kernel, run, lying=role.startswith("~"))
        client = kernel._parts.connection.client
        process = Process(f"{number} {role}", client, wide=stage.slots > 1)
        process.act = partial(ROLES[role.lstrip("~")], run, process, kernel, word)
        processes.append(process)
    story = stage.play(run, processes, choices)
    run.wrong += _of_entries(run)
    stage.settle(run)
    roles = [role.lstrip("~") for role, _ in case.actors]
    return Outcome([*run.wrong, *_of_end(run), *_of_answers(run, roles, processes)], story)


def _do_before(stage: Stage, run: Run, case: Case) -> None:
    kernel = stage.kernels[0]
    stage.hint(kernel, run, lying=False)
    for role, word in case.before:
        if role == "time_passes":
            for key in run.keys:
                run.let_time_pass(key)
        else:
            ROLES[role](run, Process("before"), kernel, word)
    for key, script in run.scripts.items():
        run.watches[key].skip(run.read(key))
        for entry in script.entries:
            run.watches[key].begins[entry.step] += 1


def _of_entries(run: Run) -> Iterator[str]:
    """Nobody enters a step that nobody began; a step may have begun and not been entered."""
    for key, script in run.scripts.items():
        begins = run.watches[key].begins
        for step, entered in Counter(entry.step for entry in script.entries).items():
            if entered > begins[step]:
                yield f"I5 {step} was entered {entered} times and begun {begins[step]} times"


def _of_end(run: Run) -> Iterator[str]:
    """What the stored facts say in the end, and what the activities saw."""
    told = {"signal_id": {"$in": sorted(run.signals)}}
    rows = list(run.stage.signals.find(told)) if run.signals else []
    for key, script in run.scripts.items():
        instance = run.watches[key].last
        entered = Counter(entry.step for entry in script.entries)
        if instance is None:
            yield from (f"{key}: {step} was entered and is nowhere" for step in entered)
            continue
        yield from map(str, of_instance(instance))
        mine = {row["signal_id"]: row["status"] for row in rows if _is_of(row, key)}
        yield from _of_signals(run, key, mine)
        for name, step in instance.steps.items():
            if step.status is StepStatus.COMPLETED and not entered[name]:
                yield f"{name} is completed and was never entered"


def _is_of(row: Mapping[str, Any], key: str) -> bool:
    return bool(row["workflow_id"] == workflow_id_of(key))


def _of_signals(run: Run, key: str, kept: Mapping[str, str]) -> Iterator[str]:
    """A signal wakes once, and is kept as matched if it did."""
    woken: Counter[str] = Counter()
    for (_, signal_id), times in run.watches[key].wakes.items():
        woken[signal_id] += times
    yield from (f"signal {one} woke {n} times" for one, n in woken.items() if n > 1)
    seen = {entry.woken_by for entry in run.scripts[key].entries} | set(woken)
    for signal_id, status in kept.items():
        if status == "pending" or (status == "matched") != (signal_id in seen):
            did = "woke a step" if signal_id in seen else "woke nobody"
            yield f"signal {signal_id} is {status} and {did}"


def _of_answers(run: Run, roles: Sequence[str], processes: Sequence[Process]) -> Iterator[str]:
    """What callers were told, against what became true."""
    starts: dict[str, list[StartResult]] = {key: [] for key in run.keys}
    superseded: Counter[str] = Counter()
    for role, process in zip(roles, processes, strict=True):
        told = process.result
        if role == "start" and isinstance(told, list):
            for key, answer in zip(run.keys, told, strict=True):
                starts[key] += [answer] if answer is not None else []
        if role == "supersede" and isinstance(told, list):
            superseded.update(key for key, changed in zip(run.keys, told, strict=True) if changed)
    for key in run.keys:
        instance = run.watches[key].last
        rounds = [s.instance.fencing_token for s in starts[key] if s.accepted]
        if rounds and (instance is None or instance.fencing_token < max(rounds)):
            yield f"I1 round {max(rounds)} was accepted and is not the stored one"
        won = Counter(s.instance.fencing_token for s in starts[key] if s.activated)
        yield from (f"I2 round {n} was activated {k} times" for n, k in won.items() if k > 1)
        if superseded[key] > 1:
            yield f"supersede changed it {superseded[key]} times"
        if superseded[key] and (instance is None or instance.status is not InstanceStatus.CANCELED):
            yield f"I6 was superseded and is {instance and instance.status}"


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


_WORK, _TELL, _END, _LATER = ("work", ""), ("tell", "a:x"), ("supersede", ""), ("time_passes", "")
#: How an instance was left: type, words, what was done before, and who may come now.
_LEFT: dict[str, tuple[str, Mapping[str, Sequence[str]], list[Actor], list[Actor]]] = {
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


def pairs(left: str | None = None) -> Iterator[Case]:
    """Yield every two short operations on an instance left in every way, or in one."""
    for name, (of, words, before, actors) in _LEFT.items():
        for one, other in combinations_with_replacement(actors, 2):
            if left in (None, name) and (one, other) != (_LATER, _LATER):
                yield Case(of=of, words=words, before=before, actors=[one, other])


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
