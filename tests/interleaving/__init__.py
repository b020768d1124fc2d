"""Several real processes on one instance, stepped command by command, in every order and any.

```
actor threads ─▶ kernel ─▶ driver ─▶ wire: held back ─▶ schedule: whose turn, what fate ─▶ mongod
                                                         └▶ watch: was this change allowed?
```

`wire` holds back every command of a process at the driver's socket, below whatever the kernel does
to get it there; `schedule` lets one at a time through, in an order a `choices` source decides, may
lose its answer, or let it arrive late; `changes` judges each change of the instance by what it was
before and who wrote it; `stage` sets up the processes and brings an instance to its end; `scripts`
says what activities do, `roles` what actors do, `cases` who meets whom. `python -m
tests.interleaving` runs it all; the same seed gives the same order.
"""
