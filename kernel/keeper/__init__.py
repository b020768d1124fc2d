"""Keeps the claims of a worker's children alive from outside, ends children that hang (design 1.5).

**Why another process.** The lease belongs to a claim and is renewed while its activity runs. Code
that holds the GIL (a decoder, a catastrophic regex) starves every thread of its process, a renewing
one too. So the keeper is a thread of the worker's *main* process, which runs no activity code.

**Authority.** MongoDB decides whose a claim is; the keeper only renews what children publish, and
acts on processes of its own worker.

**Slots.** One anonymous shared mapping, made before the children are forked. Every area has one
writer: a child publishes its claims (workflow_id, token, deadline, the step that has to come home
first) in two copies that take turns; the keeper publishes its beat, the stop request, and the
tokens it found lost. No lock is shared, so no death can leave one locked.

```
child   takes a claim ─▶ publishes it ─▶ … ─▶ withdraws it
keeper  every 0.25 s: beat · read slots · dead child? free its claims · past a deadline? SIGKILL
        every lease/3 (1 s while MongoDB is silent): renew all in one bulk write · flag lost tokens
```

**Failures.**

| dies | what follows |
|---|---|
| a child | its claims are freed by the token it published, once its death is sure; on ≤ 2 s |
| a child, replaced at once | the successor finds the published claims in its slot and frees them |
| the keeper's thread or process | children miss its beat, renew themselves, take nothing new |
| the whole worker | the leases run out |

A claim past its deadline has its child killed (SIGKILL, GIL or not); the step it was in is named as
culprit, so that only this one counts a recovery; a token flagged as lost for 10 s likewise. Engine
work moves its deadline on with every try, so waiting for MongoDB kills nobody.
"""

from __future__ import annotations

from kernel.keeper.child import ChildKeeper
from kernel.keeper.keeper import Keeper
from kernel.keeper.slots import ClaimSlots

__all__ = ["ChildKeeper", "ClaimSlots", "Keeper"]
