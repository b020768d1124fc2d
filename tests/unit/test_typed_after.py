"""The typed value of a changed document: what it shares with the one before is not typed again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kernel.model import WorkflowInstance
from kernel.protocol.apply import Document, apply_changes, typed_after
from kernel.protocol.expressions import Add, Changes, Json, Lit, Now, Unset
from tests.unit.instances import document

NOW = datetime(2026, 11, 30, tzinfo=UTC)
CHANGES: dict[str, Changes] = {
    "nothing": {},
    "one step": {"steps.a.status": Lit("completed"), "steps.a.seq": Add(1)},
    "a step and the instance": {"steps.b.checkpoint": Json({"n": 1}), "revision": Add(1)},
    "a field that goes": {"steps.b.since": Unset(), "claim_token": Unset()},
    "the instance alone": {"status": Lit("completed"), "finished_at": Now(), "output.a": Json(1)},
}


@pytest.mark.parametrize("named", CHANGES)
def test_it_equals_the_value_typed_whole(named: str) -> None:
    before: Document = document({"a": "running", "b": {"since": NOW}})
    instance = WorkflowInstance.model_validate(before)
    after = apply_changes(before, CHANGES[named], NOW)
    typed = typed_after(instance, before, after)
    assert typed == WorkflowInstance.model_validate(after)
    untouched = {name for name in after["steps"] if after["steps"][name] is before["steps"][name]}
    assert all(typed.steps[name] is instance.steps[name] for name in untouched)
