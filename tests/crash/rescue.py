"""What happens after a death: a fresh process brings everything to its end and judges it.

Guarantees the same judgement for every scenario: invariants of the documents, as the death left
them and in the end; no hint left; completed steps never entered again; no more repeats than steps
that were in flight. Leaves what the right end is to the scenario.
"""

from collections import Counter
from collections.abc import Iterator

import redis

from kernel import StepStatus, WorkflowInstance
from tests.crash import invariants
from tests.crash.scenarios.scenario import Scenario
from tests.crash.stage import Stage
from tests.kit import groups

#: (biz_key, step) → calls in all rounds.
Calls = Counter[tuple[str, str]]


def rescue(scenario: Scenario, stage: Stage, *, died: bool) -> list[str]:
    """Recover a run and return what is wrong with its end."""
    left_behind = _instances(scenario, stage)
    at_once = [*invariants.of_instances(left_behind), *scenario.look(stage)]
    completed = _completed(left_behind)
    calls = _calls(stage)
    scenario.recover(stage)
    again = {key: _calls(stage)[key] - calls[key] for key in completed}
    instances = _instances(scenario, stage)
    return [
        *(f"left by the death: {sentence}" for sentence in at_once),
        *scenario.check(stage),
        *scenario.look(stage),
        *(f"{key} was completed and entered {n} times more" for key, n in again.items() if n),
        *_of_entries(scenario, stage, died=died),
        *(f"{i.biz_key} never ended" for i in instances if not i.status.is_terminal),
        *invariants.of_instances(instances),
        *invariants.of_hints(_keys(stage)),
    ]


def _instances(scenario: Scenario, stage: Stage) -> list[WorkflowInstance]:
    found = [stage.kernel.find(biz_key=key) for key in scenario.biz_keys(stage.world)]
    return [instance for instance in found if instance is not None]


def _completed(instances: list[WorkflowInstance]) -> set[tuple[str, str]]:
    return {
        (instance.biz_key, name)
        for instance in instances
        for name, step in instance.steps.items()
        if step.status is StepStatus.COMPLETED
    }


def _calls(stage: Stage) -> Calls:
    return Counter((entry.biz_key, entry.step) for entry in stage.ledger.entries())


def _of_entries(scenario: Scenario, stage: Stage, *, died: bool) -> Iterator[str]:
    if scenario.entries is None:
        return
    counts = stage.ledger.counts()
    wanted = Counter(
        {(stage.world.biz_key(name), n, step): k for (name, n, step), k in scenario.entries.items()}
    )
    extra = {key: counts[key] - wanted[key] for key in {*counts, *wanted}}
    for key, n in extra.items():
        if n < 0 or n > 1 or key not in wanted:
            yield f"{key} was entered {counts[key]} times, {wanted[key]} without a death"
    # Each slot of the process that died may have had an instance of its own in flight.
    side_by_side = min(groups.slots(), len(scenario.biz_keys(stage.world)))
    allowed = scenario.width * side_by_side if died else 0
    if sum(extra.values()) > allowed:
        yield f"{sum(extra.values())} steps were entered again, {allowed} were in flight"


def _keys(stage: Stage) -> list[str]:
    with redis.Redis.from_url(stage.world.redis_url, decode_responses=True) as client:
        return [str(key) for key in client.scan_iter(match=f"{stage.world.key_prefix}:*")]
