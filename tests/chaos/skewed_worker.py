"""Celery in a process whose own clock is wrong: `python -m tests.chaos.skewed_worker SECONDS …`.

The kernel and Celery read the wrong time, forked children too; the servers' clocks stay right.
"""

import sys
from importlib import import_module

from tests.crash.skewed import skew_clock


def main() -> None:
    """Turn the clock before Celery is imported, then be `celery`."""
    import_module("kernel")
    seconds = float(sys.argv.pop(1))
    if seconds:
        skew_clock(seconds)
    from celery.__main__ import main as celery

    celery()


if __name__ == "__main__":
    main()
