"""Hints for a page of instances at once: one round trip and one bell for each queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from kernel.engine.hinting import HintWriter, as_ms
from kernel.errors import HintsUnavailable
from kernel.hints import Candidate
from kernel.model import WorkflowInstance


def place_due(hints: HintWriter, due: Iterable[tuple[WorkflowInstance, datetime]]) -> None:
    """Put instances into their lanes, each with the moment from which it may run, and ring.

    Best effort, like every hint. On repeat: nothing changes.
    """
    by_queue: dict[str, list[Candidate]] = defaultdict(list)
    for instance, moment in due:
        candidate = Candidate(instance.workflow_id, int(instance.priority), as_ms(moment))
        by_queue[instance.queue].append(candidate)
    for queue, candidates in by_queue.items():
        with suppress(HintsUnavailable):
            hints.hints.push_all(queue, candidates)
        hints.ring(queue)
