"""In what order a run's tests come: those that wait for real workers first, the longest ones ahead.

```
items: ┃ wait for workers, leases, outages ┃ everything else ┃
       └ worksteal: the first process's   ┴ the others' shares; who is done takes from the end
```

Guarantees that on few cores one process has all of the first kind, so that no two stacks run side
by side and no long test begins last, and that it mostly waits, so that one process more than there
are cores has work for them. Leaves the order within a module, and any other, as it was.
"""

from pathlib import Path

#: Modules and folders in this order.
FIRST = (
    "tests/stack/test_demo.py",
    "tests/stack/test_up.py",
    "tests/trust",
    "tests/capacity_proof",
    "tests/workers",
    "tests/tutorial/test_adding_a_workflow.py",
    "tests/keeper",
    "tests/crash/test_racing_workers.py",
    "tests/crash/test_stale_worker.py",
    "tests/crash/test_dying_servers.py",
    "tests/speech/test_dying_worker.py",
    "tests/live/test_fanout.py",
    "tests/waiting/test_crowds.py",
)


def place(module: Path, root: Path) -> int:
    """Return a module's place; all that wait for nobody share the last one."""
    name = module.relative_to(root).as_posix()
    for at, first in enumerate(FIRST):
        if name == first or name.startswith(f"{first}/"):
            return at
    return len(FIRST)
