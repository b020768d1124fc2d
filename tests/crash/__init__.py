"""Kill tests: processes die at every boundary they can leave behind, and the work still ends right.

```
lab (test process) ─jobs─▶ zygote ─fork─▶ actor: arrange, then act until killed at command k
                                  └fork─▶ rescuer: fresh worker, tick, reconcile ─▶ violations
```

A scenario (`scenarios/`) says what is arranged, what is done under the knife and what must hold in
the end; `kills` ends the actor, `lab` walks k until an actor ends by itself. Guarantees that the
product has no hooks for this: commands are seen through the drivers' own listeners, in the child.
Leaves to `invariants` what must hold of any stored instance. `python -m tests.crash` runs it all.
"""
