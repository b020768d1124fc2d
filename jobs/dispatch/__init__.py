"""The embedded dispatch intent: a business row that cannot forget to run its workflow.

An accepted request is ONE insert: the business object and, in `dispatch_*` columns of the same row,
the intent to run a workflow for it. Nothing else has to survive for the work to be done (I1).

Words
    A *generation* is one `dispatch_biz_key`: one workflow instance for ever. Inside a generation,
    *rounds* are numbered by `dispatch_fencing_token`; a user's retry after failure is a new round.
    The *dispatch claim* (`dispatch_claim_token`, `dispatch_claim_until`) says who is registering.
    None of them stands in for another.

States, and who moves a row on
    pending      must reach `start_or_resume`     request path (relay), or recovery under its claim
    processing   recovery holds a short claim     its holder; anyone once the claim ran out
    dispatched   this round's instance exists     a new round, or a cancel
    withdrawing  the object was canceled          cancel path (relay) at once, or recovery
    withdrawn    nothing of it runs or will       only a new generation
    refused      this round can never run         people, or a new generation
    NULL         older than the mixin             nobody, until `manage.py adopt`

    insert ──▶ pending ──confirm──▶ dispatched ──new round──▶ pending (token + 1)
                 │  ▲                   │
            take │  │ give back         │ cancel (from every state)
                 ▼  │                   ▼
              processing ──▶ refused   withdrawing ──▶ withdrawn

    over | refused | withdrawn ──new generation──▶ pending (biz_key `…:g2`, token + 1)

Guards
    Every move is one conditional UPDATE whose WHERE names what the mover believes: the status, the
    round, the generation, and where somebody holds the row, the dispatch claim. "No row matched"
    is an answer, never retried without the guard. Time is the database's (`clock.db_now`), so no
    process's clock takes part. No transaction is needed; where the host opened one, the relay
    waits for its commit.

Authority
    The row says what must run; the kernel's instance says how far it got. Only `accepted` from
    `start_or_resume` confirms. The relay never touches a round but its own; it re-reads when its
    confirm misses, and ends what it just registered if the object was withdrawn meanwhile. The
    kernel refuses a late registration of an older round by the round's number, so a dispatch
    claim taken over by somebody else costs one repeated call and nothing more.

What a crash leaves, write by write
    before the insert commits        nothing, anywhere
    insert | registration            pending; recovery registers it
    registration | confirm           pending; recovery registers again (accepted: same round)
    new round | registration         pending with the new number; recovery replays the instance
    taken | registration | confirm   processing; taken over when the claim runs out
    cancel | supersede | withdrawn   withdrawing; recovery supersedes (repeatable) and closes it
    new generation | old one ended   pending with the new name; recovery ends the old one first
    registered after a withdrawal    the instance's first fenced write finds the object canceled
                                     and ends it (`WorkflowCanceled`)

Business writes of a running round go through `fenced_update`, whose filter names the round and the
statuses in which it is still open: a late worker of an old round, or of the same finished round,
changes nothing (I6).

Leaves to others: execution (`kernel`), which columns a business has (`jobs.models`), who calls
recovery and how often (`jobs.wakeups`). Design 3.
"""

from jobs.dispatch.adoption import Adoption, Decision, adopt
from jobs.dispatch.errors import DispatchError, GuardedColumn, IncompleteMapping, NotInstalled
from jobs.dispatch.fenced import FencedOutcome, FencedWrite, fenced_update
from jobs.dispatch.fields import ExactJSONField
from jobs.dispatch.generations import new_generation
from jobs.dispatch.intent import Intent
from jobs.dispatch.mixin import DispatchMixin, dispatch_models
from jobs.dispatch.requests import CancelOutcome, cancel, install, new_round
from jobs.dispatch.states import DispatchStatus, StatusMapping

__all__ = [
    "Adoption",
    "CancelOutcome",
    "Decision",
    "DispatchError",
    "DispatchMixin",
    "DispatchStatus",
    "ExactJSONField",
    "FencedOutcome",
    "FencedWrite",
    "GuardedColumn",
    "IncompleteMapping",
    "Intent",
    "NotInstalled",
    "StatusMapping",
    "adopt",
    "cancel",
    "dispatch_models",
    "fenced_update",
    "install",
    "new_generation",
    "new_round",
]
