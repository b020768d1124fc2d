"""The protocol of execution, pure: values in, values out (design 1.3 to 1.5).

No function here does I/O, reads a clock or draws a random number; what decides is the instance as
read and the database's now that came with it. Every decision becomes a `Commit`: a guard and the
changes under it. The store turns it into ONE conditional update; "no match" is a normal answer.

**Authority.** The document in `workflow_instances` says how far execution got. The holder of the
current `claim_token` alone advances it, until the lease in `claimable_time` is over on the
database's clock and somebody else takes a new token. Redis and Celery decide nothing.

**An instance** is born running and claimable; its steps form waves:

```
              ┌────────── claim ──────────┐
  running ────┤ begin wave → activities → │──▶ completed      (success finalizer first)
     ▲        │ come home → settle        │──▶ failing ──▶ failed   (failure finalizer between)
     │        └──────────┬────────────────┘──▶ canceled       (an activity said so; supersede)
     │ due               ▼ release
  waiting ◀──── nothing can run before a time or a signal
```

**A step** is pending, running, waiting, completed, failed or skipped. Its `seq` rises by one with
every transition and is part of every guard that moves it, so that a command that arrives late, or a
belief that has become wrong, matches nothing.

**A wave** is closed. `begin` counts an attempt for all its steps in one write before any activity
is entered; of an untouched instance whose first steps need no permits, the write of the claim
itself (`first_wave`). Each step that comes home writes only itself; the last one also settles the
instance in the same write (`settling`), and where exactly one step is next, begins it there too. So
a linear plan of N steps costs N+1 instance writes: claim with first begin, N homecomings.

**A crash** leaves one of these facts, and each determines what the next holder does:

| between | facts left | the next holder |
|---|---|---|
| claim / begin | claimed, steps pending | begins the same wave |
| begin / homecoming | steps running | begins them again, recoveries + 1, or `worker_lost` |
| two homecomings of a wave | one done, one running | runs the one that is still running |
| homecoming / next begin | done, next pending | begins the next wave |
| cancel of one / settling | skipped with `workflow_canceled` | finishes canceled, runs nothing |
| failed / failing | a failed step, running | enters failing |
| failing begun / finalizer done | finalizer started | runs it again, its recoveries + 1 |
| finalizer done / finish | the same | runs it again: finalizers repeat |
| release / hints | claimable, in no lane | reconcile puts it into its lane |

**Modules.** `readiness` says what a holder does next; `beginning`, `homecoming`, `coming_home` and
`settling` make the writes of a wave; `finalizing` those of the reliable end; `owning` claims,
hand-backs, activations and supersedes; `starting` registration and replay; `spans` where time went;
`judging` what became of a write whose answer was lost; `expressions`, `commit` and `apply` are the
language they all speak.
"""
