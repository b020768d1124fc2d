"""What ``manage.py workflows`` shows of an instance, as tables for people.

Guarantees: everything shown is a stored fact of the instance. Leaves to others: reading it
(``kernel``) and layout (``jobs.management.terminal``).
"""

from collections.abc import Sequence

from jobs.management.terminal import clean, duration, printable, table
from kernel import WorkflowInstance

_TIMES = ("scheduling", "traffic", "activity", "external")


def listing(instances: Sequence[WorkflowInstance], *, colour: bool) -> str:
    """One line an instance."""
    rows = [
        [
            item.workflow_id,
            item.type,
            item.status,
            _current_step(item),
            item.blocked_on.reason if item.blocked_on else None,
            item.created_at,
            item.biz_key,
        ]
        for item in instances
    ]
    if not rows:
        return "No workflows."
    headers = ["WORKFLOW", "TYPE", "STATUS", "STEP", "WAITS FOR", "CREATED", "BIZ KEY"]
    return table(headers, rows, colour=colour)


def sheet(instance: WorkflowInstance, *, colour: bool) -> str:
    """Everything about one instance: header, steps, attempts, times."""
    parts = [_header(instance, colour=colour), _steps(instance, colour=colour)]
    attempts = _attempts(instance, colour=colour)
    if attempts:
        parts.append(attempts)
    return "\n\n".join(parts)


def _header(instance: WorkflowInstance, *, colour: bool) -> str:
    blocked = instance.blocked_on
    rows: list[list[object]] = [
        ["workflow", instance.workflow_id],
        ["type", instance.type],
        ["biz_key", instance.biz_key],
        ["status", instance.status],
        ["round", instance.fencing_token],
        ["priority", f"P{int(instance.priority)}"],
        ["queue", instance.queue],
        ["created", instance.created_at],
        ["finished", instance.finished_at],
        ["claimed by", instance.claim_owner],
    ]
    if blocked is not None:
        what = ", ".join(blocked.resources)
        rows.append(["waits for", f"{blocked.reason} {what}".strip()])
        rows.append(["waits since", blocked.since])
    text = table(["", ""], rows, colour=colour).lstrip("\n")
    if instance.error is not None:
        # Not a row of the table, which would cut the message.
        label = "error".ljust(max(len(str(row[0])) for row in rows))
        step = f" in {instance.error.step}" if instance.error.step else ""
        text += f"\n{label}  {instance.error.code}{step}: {printable(instance.error.message)}"
    return text


def _steps(instance: WorkflowInstance, *, colour: bool) -> str:
    rows = []
    for name in instance.plan:
        step = instance.steps[name]
        spans = [duration(getattr(step.times, f"{kind}_ms")) for kind in _TIMES]
        rows.append([name, step.status, step.attempt, step.recoveries, *spans, step.finished_at])
    headers = ["STEP", "STATUS", "ATTEMPT", "RECOVERIES", *(kind.upper() for kind in _TIMES)]
    return table([*headers, "FINISHED"], rows, colour=colour)


def _attempts(instance: WorkflowInstance, *, colour: bool) -> str:
    entries = [(name, at) for name in instance.plan for at in instance.steps[name].attempts]
    entries.sort(key=lambda entry: (entry[1].from_, entry[1].n))
    rows = []
    for name, attempt in entries:
        span = (attempt.to - attempt.from_).total_seconds() * 1000
        rows.append(
            [
                f"{attempt.from_:%H:%M:%S}.{attempt.from_.microsecond // 1000:03d}",
                duration(round(span)),
                name,
                f"attempt {attempt.n}",
                clean(attempt.outcome),
            ]
        )
    if not rows:
        return ""
    return table(["FROM", "TOOK", "STEP", "ATTEMPT", "OUTCOME"], rows, colour=colour)


def _current_step(instance: WorkflowInstance) -> str | None:
    if instance.finished_at is not None:
        return None
    for name in instance.plan:
        if not instance.steps[name].is_done:
            return name
    return None
