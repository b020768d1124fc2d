"""Lets time pass by moving stored times back: of some instances, of their permits, of resources.

Guarantees that what never comes stays that way, and that nothing but times is changed. Leaves when
it passes, and for whom, to roles and to settling.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

Pipeline = list[dict[str, Any]]

#: What passes at once: longer than every lease, backoff and wait but that of a poisoned finalizer.
LONG = timedelta(hours=2)
_LONG_MS = int(LONG.total_seconds() * 1000)


def of_permits(workflow_id: str) -> Pipeline:
    """Let the permits and reservations of one instance be over."""
    held = {"$eq": ["$$this.owner.workflow_id", workflow_id]}
    kept = {"$eq": ["$$this.workflow_id", workflow_id]}
    return [
        {"$set": {"holders": _expired("$holders", held)}},
        {"$set": {"reservations": _expired("$reservations", kept)}},
    ]


def _earlier(field_path: str) -> dict[str, Any]:
    """The time at a path, moved back unless there is none or it never comes."""
    is_near = {"$lt": [{"$year": field_path}, 9000]}
    moved = {"$subtract": [field_path, _LONG_MS]}
    is_date = {"$eq": [{"$type": field_path}, "date"]}
    return {"$cond": [is_date, {"$cond": [is_near, moved, field_path]}, field_path]}


def _with(path: str, field_name: str) -> dict[str, Any]:
    """A subdocument with one of its times moved back; what is missing stays away."""
    return {"$mergeObjects": [path, {field_name: _earlier(f"{path}.{field_name}")}]}


def _expired(records: str, condition: Any) -> dict[str, Any]:
    over = {"$cond": [condition, _with("$$this", "expires"), "$$this"]}
    return {"$map": {"input": {"$ifNull": [records, []]}, "in": over}}


_STEPS = {"$objectToArray": "$steps"}
_STEP = {"$mergeObjects": ["$$this", {"v": _with("$$this.v", "not_before")}]}
_FINALIZER_WAITS = {"$eq": [{"$type": "$finalizer.not_before"}, "date"]}
#: Leases, backoffs and waits of an instance.
OF_INSTANCES: Pipeline = [
    {
        "$set": {
            "claimable_time": _earlier("$claimable_time"),
            "waits": {"$map": {"input": "$waits", "in": _with("$$this", "poll_time")}},
            "steps": {"$arrayToObject": {"$map": {"input": _STEPS, "in": _STEP}}},
            "finalizer": {
                "$cond": [_FINALIZER_WAITS, _with("$finalizer", "not_before"), "$finalizer"]
            },
        }
    },
]
_OVERRIDDEN = {"$eq": [{"$type": "$override.until"}, "date"]}
#: Start slots, cooldown and override of a resource.
OF_RESOURCES: Pipeline = [
    {
        "$set": {
            "starts": {
                "$map": {
                    "input": {"$ifNull": ["$starts", []]},
                    "in": {"$subtract": ["$$this", _LONG_MS]},
                }
            },
            "cooldown_until": {"$ifNull": [_earlier("$cooldown_until"), None]},
            "override": {
                "$cond": [
                    _OVERRIDDEN, _with("$override", "until"), {"$ifNull": ["$override", None]}
                ]
            },
        }
    },
]  # fmt: skip
#: The moments at which permits were granted.
OF_GRANTS: Pipeline = [
    {
        "$set": {
            "holders": {
                "$map": {"input": {"$ifNull": ["$holders", []]}, "in": _with("$$this", "since")}
            }
        }
    }
]
#: As of resources, and every permit and reservation.
OF_EVERYTHING: Pipeline = [
    *OF_RESOURCES,
    {"$set": {"holders": _expired("$holders", True)}},
    {"$set": {"reservations": _expired("$reservations", True)}},
]


def but_for_those_in_line(workflow_ids: Sequence[str]) -> dict[str, Any]:
    """Find these instances without those that wait for a permit: they have to be handed on to."""
    in_line = {"blocked_on.resources.0": {"$exists": True}, "claim_token": None}
    return {"workflow_id": {"$in": list(workflow_ids)}, "$nor": [in_line]}
