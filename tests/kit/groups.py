"""How many claims a process runs side by side, and how many writes travel together.

`BATON_TEST_SLOTS` and `BATON_TEST_GROUPS` let a whole suite, the crash matrix or the soak run with
claims side by side and groups of any size; without them one claim at a time. Leaves where they
count to whoever builds a kernel or starts a worker.
"""

import os
from argparse import ArgumentParser, Namespace
from typing import Any

from kernel import limits
from tests.kit.programs import counted

SLOTS, GROUPS = "BATON_TEST_SLOTS", "BATON_TEST_GROUPS"


def slots() -> int:
    """Return how many claims a process runs side by side."""
    return int(os.environ.get(SLOTS, "1"))


def of_kernel() -> dict[str, Any]:
    """Return what a kernel's configuration says about it."""
    return {
        "slots_per_child": slots(),
        "group_commits": int(os.environ.get(GROUPS, "32")),
    }


def add_options(parser: ArgumentParser) -> None:
    """Let a program's caller choose."""
    slots = counted(1, limits.SLOTS_PER_CHILD)
    parser.add_argument("--slots", type=slots, help="claims each process runs side by side")
    groups = counted(1, 1000)
    parser.add_argument("--groups", type=groups, help="writes that may travel together (32)")


def choose(chosen: Namespace) -> None:
    """Hand on to every process what the caller chose."""
    for name, value in ((SLOTS, chosen.slots), (GROUPS, chosen.groups)):
        if value is not None:
            os.environ[name] = str(value)
