"""Who meets whom: one case is an instance as it was left, and actors who act on it at once.

Guarantees that a case is judged whole: each change while it ran, the end it is brought to, what
activities saw, what became of every signal. Leaves which cases there are to `crowds`, the order of
commands to `choices`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kernel import InstanceStatus, Kernel, StartResult, StepStatus, workflow_id_of
from kernel.hints import NoHints
from kernel.store.schema import CAPACITY, SIGNALS
from kernel.verifying import of_instance
from tests.interleaving import passing
from tests.interleaving.choices import Choices, Scripted
from tests.interleaving.permits import Ledger
from tests.interleaving.roles import ROLES
from tests.interleaving.run import Run
from tests.interleaving.schedule import Process, Unheld
from tests.interleaving.scripts import Script
from tests.interleaving.stage import Stage
from tests.interleaving.wire import Fate

#: Instances of a schedule whose worker runs many claims at once, but takes part in it with few.
_FEW = 4
#: An actor: its role and the role's word; with `~` in front, its hints lie.
Actor = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one schedule is about; `before` is done in order, by the first process, untroubled."""

    of: str
    words: Mapping[str, Sequence[str]]
    before: Sequence[Actor] = ()
    actors: Sequence[Actor] = ()
    #: How many at least: with more claims a worker there are as many as those, or such a part of
    #: them, since many are slow and few meet as often.
    instances: int = 1
    part: float = 1.0

    def __str__(self) -> str:
        acts = [" ".join(filter(None, actor)) for actor in self.actors]
        left = [" ".join(filter(None, actor)) for actor in self.before]
        words = " ".join(f"{step}={','.join(said)}" for step, said in self.words.items())
        of = self.of if self.instances == 1 else f"{self.instances} {self.of}"
        return f"{of} [{words}] after {', '.join(left)}: {' | '.join(acts)}"


@dataclass(slots=True)
class Outcome:
    """What a schedule came to: what was wrong, and its story."""

    wrong: list[str]
    story: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Played:
    """A schedule that was played and not yet brought to its end."""

    case: Case
    run: Run
    processes: Sequence[Process]
    story: list[str]


def run_case(stage: Stage, case: Case, choices: Choices) -> Outcome:
    """Run one schedule of a case to its end and judge it."""
    return end(stage, [play(stage, case, choices)])[0]


def play(stage: Stage, case: Case, choices: Choices) -> Played:
    """Run one schedule of a case."""
    few = min(stage.slots, _FEW)
    count = max(few, math.ceil(stage.slots * case.part), case.instances)
    run = stage.begin(case.of, [Script(case.words, case.of) for _ in range(count)])
    _do_before(stage, run, case)
    processes = []
    for number, (role, word) in enumerate(case.actors):
        kernel = stage.kernels[number]
        stage.hint(kernel, run, lying=role.startswith("~"))
        process = _process(stage, f"{number} {role}", kernel)
        process.act = partial(ROLES[role.lstrip("~")], run, process, kernel, word)
        processes.append(process)
    story = stage.play(run, processes, choices)
    run.wrong += [*_of_entries(run), *run.unseen()]
    if run.ledger is not None:
        _free_lost_permits(stage, run, run.ledger)
    return Played(case=case, run=run, processes=processes, story=story)


def end(stage: Stage, played: Sequence[Played]) -> list[Outcome]:
    """Bring schedules to their ends, judge them, and forget them."""
    runs = [one.run for one in played]
    stage.settle(runs)
    told = sorted({signal_id for run in runs for signal_id in run.signals})
    rows = list(stage.facts[SIGNALS].find({"signal_id": {"$in": told}})) if told else []
    outcomes = []
    for one in played:
        roles = [role.lstrip("~") for role, _ in one.case.actors]
        answers = _of_answers(one.run, roles, one.processes)
        outcomes.append(Outcome([*one.run.wrong, *_of_end(one.run, rows), *answers], one.story))
    stage.forget(runs)
    return outcomes


def _process(stage: Stage, name: str, kernel: Kernel) -> Process:
    client = kernel._parts.connection.client
    return Process(name, client, wide=stage.slots > 1)


def _do_before(stage: Stage, run: Run, case: Case) -> None:
    kernel = stage.kernels[0]
    stage.hint(kernel, run, lying=False)
    for role, word in case.before:
        if role == "die":
            process = _process(stage, "died", kernel)
            process.act = partial(ROLES["work"], run, process, kernel, "")
            stage.play(run, [process], Scripted([], {int(word): Fate.DIE_BEFORE}), watched=False)
        else:
            ROLES[role](run, Unheld("before"), kernel, word)
    for key, now in run.read(run.ids).items():
        run.watches[key].skip(now)
        for entry in run.scripts[key].entries:
            run.watches[key].begins[entry.step] += 1
    run.skip_resources()


def _free_lost_permits(stage: Stage, run: Run, ledger: Ledger) -> None:
    """Judge that reconciliation alone frees what no claim holds.

    No time passes but that in which the claim of a permit passed on could yet be taken.
    """
    run.counts += ledger.counts
    if not (lost := ledger.lost(run.is_held_by)):
        return
    run.counts["permits of lost claims"] += len(lost)
    stage.facts[CAPACITY].update_many({"_id": {"$in": run.resources}}, passing.OF_GRANTS)
    stage.minder.hints.hints = NoHints()
    stage.minder.reconcile()
    for key, now in run.read(run.ids).items():
        run.watches[key].skip(now)
    run.skip_resources()
    run.wrong += [f"reconcile did not free {one}" for one in ledger.lost(run.is_held_by)]
    list(run.unseen())  # to be put aside as it is now


def _of_entries(run: Run) -> Iterator[str]:
    """Nobody enters a step that nobody began; a step may have begun and not been entered."""
    for key, script in run.scripts.items():
        begins = run.watches[key].begins
        for step, entered in Counter(entry.step for entry in script.entries).items():
            if entered > begins[step]:
                yield f"I5 {step} was entered {entered} times and begun {begins[step]} times"


def _of_end(run: Run, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the stored facts say in the end, and what the activities saw."""
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
    last = run.watches[key].last
    for step in last.steps.values() if last is not None else ():
        seen |= set(step.woken_by)  # woken, and ended before it was entered
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
