"""Let real workers work for a while and hurt everything: `python -m tests.chaos [--seconds N]`.

Guarantees a line of progress every few seconds, the seed and the log of faults in the folder that
is named first, and a last line with the sum; exit status 1 if anything was violated, or nothing was
accepted. `--seed` repeats the choices of a run; what they meet depends on the machine. Without
`--slots` workers run one or four claims a child, as drawn.
"""

import argparse
import os
import secrets
import tempfile
from pathlib import Path

from tests.kit import groups
from tests.kit.programs import above_zero, counted, run


def main() -> int:
    """Run one soak; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--seconds", type=above_zero, default=120.0, help="how long faults go on (120)"
    )
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run")
    parser.add_argument("--workers", type=counted(1), default=3)
    parser.add_argument("--children", type=counted(1), default=2, help="processes of each worker")
    parser.add_argument("--rate", type=above_zero, default=3.0, help="submissions a second")
    parser.add_argument("--pause", type=above_zero, default=3.0, help="seconds between two faults")
    parser.add_argument(
        "--idle", type=above_zero, default=180.0, help="seconds it may take to end all"
    )
    groups.add_options(parser)
    chosen = parser.parse_args()
    if chosen.seed is None:
        chosen.seed = secrets.randbits(31)
    folder = Path(tempfile.mkdtemp(prefix="baton-chaos-"))
    os.environ.setdefault("BATON_DATA_DIR", str(folder / "data"))
    # Only now: the settings of this process are those of the servers it starts.
    from tests.chaos.run import Run

    return Run(chosen, folder).run()


if __name__ == "__main__":
    run(main)
