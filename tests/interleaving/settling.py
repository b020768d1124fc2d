"""Brings the instances of many schedules to their ends at once, by looking around alone.

Nobody tells anybody anything: time passes, tick and reconcile look, whatever is due is run. Those
that wait for a permit get no time: they have to be handed on to, for what freed a place is all that
happens to them. Guarantees that a run that does not end says so. Leaves judging the end to `cases`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kernel import InstanceStatus, Kernel, WorkflowInstance
from kernel.hints import NoHints
from kernel.store.schema import CAPACITY, INSTANCES, SIGNALS
from tests.interleaving import passing
from tests.interleaving.run import Facts, Run, as_instance
from tests.interleaving.scripts import QUEUE, SIGNAL

#: Rounds of looking after which an instance that has not ended never will, and more an instance.
_ROUNDS_MAX = 40
_ROUNDS_EACH = 4


def settle(minder: Kernel, facts: Facts, runs: Sequence[Run]) -> None:
    """Bring every run to its end, and say in `run.wrong` which came to none."""
    minder.hints.hints = NoHints()
    by_id = {workflow_id: run for run in runs for workflow_id in run.ids}
    for run in runs:
        _open_again(minder, run)
    limited = [run for run in runs if run.resources]
    open_ids = list(by_id)
    for _ in range(_ROUNDS_MAX + _ROUNDS_EACH * max(len(run.ids) for run in runs)):
        open_ids = _look_around(minder, facts, runs, by_id, open_ids)
        if not open_ids:
            break
    for run in {id(run): run for run in map(by_id.__getitem__, open_ids)}.values():
        run.wrong.append("I10 not at an end after all rounds of looking")
    if limited:
        _look_last(minder, facts, limited)
    _take_in(facts, runs)


def _look_around(
    minder: Kernel,
    facts: Facts,
    runs: Sequence[Run],
    by_id: Mapping[str, Run],
    ids: Sequence[str],
) -> list[str]:
    """Look once with everything there is; return which instances have to be looked at again."""
    instances = _let_time_pass(facts, ids)
    found = [one for one in instances if not one.status.is_terminal]
    is_pending = _are_pending(facts, runs, by_id)
    names = [name for one in found for name in by_id[one.workflow_id].resources]
    if names:
        facts[CAPACITY].update_many({"_id": {"$in": names}}, passing.OF_EVERYTHING)
    if names or is_pending:
        minder.reconcile()
    waiting = [one for one in found if one.status is InstanceStatus.WAITING]
    if names or waiting:
        minder.tick()
    for instance in waiting:
        _tell(minder, facts, by_id[instance.workflow_id], instance)
    if found:
        minder.drain([QUEUE], max_claims=2 * len(found))
    return [one.workflow_id for one in (instances if is_pending else found)]


def _open_again(minder: Kernel, run: Run) -> None:
    """End the pauses, as whoever made them would."""
    for name, row in run.ledger.last.items() if run.ledger is not None else ():
        if row["paused"]:
            minder.capacity.resume(name)


def _let_time_pass(facts: Facts, open_ids: Sequence[str]) -> list[WorkflowInstance]:
    found = passing.but_for_those_in_line(open_ids)
    facts[INSTANCES].update_many(found, passing.OF_INSTANCES)
    rows = facts[INSTANCES].find({"workflow_id": {"$in": list(open_ids)}})
    return [as_instance(row) for row in rows]


def _are_pending(facts: Facts, runs: Sequence[Run], by_id: Mapping[str, Run]) -> bool:
    """Tell whether a signal of an instance that is there has still to be looked at."""
    told = [signal_id for run in runs for signal_id in run.signals]
    if not told:
        return False
    pending = {"signal_id": {"$in": told}, "status": "pending"}
    ids = {row["workflow_id"] for row in facts[SIGNALS].find(pending, {"workflow_id": 1})}
    known = {"workflow_id": {"$in": [one for one in ids if one in by_id]}}
    return bool(ids) and facts[INSTANCES].find_one(known, {"_id": 1}) is not None


def _tell(minder: Kernel, facts: Facts, run: Run, instance: WorkflowInstance) -> None:
    """Deliver what an instance waits for, unless somebody has."""
    for wait in instance.waits:
        told: dict[str, Any] = {"workflow_id": instance.workflow_id, "wait_key": wait.wait_key}
        told["status"] = "pending"
        if wait.wait_key is None or facts[SIGNALS].find_one(told):
            continue
        signal_id = f"{instance.biz_key}:end:{len(run.signals)}"
        run.signals.add(signal_id)
        minder.deliver_signal(
            workflow_id=instance.workflow_id,
            signal_type=SIGNAL,
            wait_key=wait.wait_key,
            signal_id=signal_id,
        )


def _look_last(minder: Kernel, facts: Facts, limited: Sequence[Run]) -> None:
    """Judge that no permit is left, and once time has passed no reservation and no line."""
    minder.reconcile()
    for run in limited:
        run.skip_resources()
    for run in limited:
        assert run.ledger is not None
        run.wrong += [f"{one} was left" for one in run.ledger.lost(lambda *_: False)]
    names = [name for run in limited for name in run.resources]
    facts[CAPACITY].update_many({"_id": {"$in": names}}, passing.OF_EVERYTHING)
    minder.tick()
    for run in limited:
        run.skip_resources()
        assert run.ledger is not None
        run.wrong += list(run.ledger.at_end())


def _take_in(facts: Facts, runs: Sequence[Run]) -> None:
    """Take in how every instance ended."""
    ids = [workflow_id for run in runs for workflow_id in run.ids]
    rows = facts[INSTANCES].find({"workflow_id": {"$in": ids}})
    ended = {row["workflow_id"]: as_instance(row) for row in rows}
    for run in runs:
        for workflow_id, key in run.ids.items():
            run.watches[key].skip(ended.get(workflow_id))
