"""Keep in Redis what speeds Baton up and may vanish at any moment: lanes, timers, leases, bells.

MongoDB decides what is true; this package only proposes whom to look at next. Everything here
can be lost, repeated, late or wrong: the price is latency, never a result, because the claim in
the store is the only grant of execution (invariant 3) and reconciliation looks at every instance
without being told (invariant 10). So no answer of this package may veto work.

```
engine, tick, reconcile ──▶ Hints (port) ◀── RedisHints ──▶ Breaker ──▶ Scripts ──▶ lua/*.lua
                                         ◀── NoHints, when there is no Redis at all
```

**Ready lanes.** Each queue has four, P0 to P3. A member is a workflow_id, its score the moment it
may run. A workflow stands in exactly one lane; a push can only raise it (higher priority, earlier
time), so pushes may arrive in any order. A pop takes the oldest due member of the lane whose turn
it is, 8:6:4:2, passing lanes with nothing due. A popped candidate stands nowhere: if the popper
dies before its claim, reconciliation finds the instance again.

**Timers and leases.** Members are looked at, not taken. Whoever has dealt with one removes it by
the score that was read, so neither a death in between nor a slow hand hides a due candidate.
A timer is put with the earlier of two times: to move one later, drop the score that was read,
then put the new time. A lease is named by workflow_id and claim token and put with the later of
two times, since a claim's lease only moves later; a token that lost its claim leaves behind an
entry which says nothing once somebody has looked into the store.

**Bells.** One per queue: whoever sets it sends the wakeup, so ten thousand pushes make few
messages. Both bells end by themselves, so a sender that dies leaves nothing stuck.

**Marker.** A key that is only missing after a flush or on a new Redis: then the lanes must be
rebuilt from the store at once.

**Failure.** Every trouble with Redis is `HintsUnavailable`, after a short timeout; after one that
came from the server's silence a breaker refuses at once for 1 s, doubling to 5 s, so that a dead
Redis costs a request nothing. Constructing with a dead Redis is no error.

**Time.** "Due" is judged inside the scripts by Redis' own clock plus the offset that tests shift;
no clock of a worker takes part. **Cluster.** All keys of one script share the hash tag of their
queue. Scripts check first and write last, and mend what a run that was cut short left behind.
"""

from __future__ import annotations

from kernel.hints.no_hints import NoHints
from kernel.hints.port import Candidate, Hints, LaneDepth, Lease
from kernel.hints.redis_hints import RedisHints

__all__ = ["Candidate", "Hints", "LaneDepth", "Lease", "NoHints", "RedisHints"]
