"""A transition as a value: under which guard, which changes (design 1.4, 1.8).

Nothing here talks to a database. A store takes a commit, applies it as ONE conditional update and
answers whether it matched; "no match" is a normal answer with a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kernel.model import InstanceStatus
from kernel.protocol.expressions import Changes

#: Guard value: nobody may hold a claim.
UNCLAIMED: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What must still be true for a commit to be written.

    `claim_token` is the holder's token, `UNCLAIMED` when nobody may hold the instance, or None
    when ownership does not matter (supersede). `step_seqs` names the sequence number of every step
    the commit moves, so that a command that arrives late matches nothing.
    """

    workflow_id: str
    statuses: tuple[InstanceStatus, ...]
    claim_token: str | None
    step_seqs: Mapping[str, int] = field(default_factory=dict)
    revision: int | None = None
    fencing_token: int | None = None
    #: Only while the stored priority number is larger, so that it is only ever raised.
    priority_above: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One guarded update: stages are evaluated in order, each on the result of the one before.

    `releases` says that the claim ends with this write; `label` names the transition for logs.
    """

    label: str
    guard: Guard
    stages: tuple[Changes, ...]
    releases: bool = False
