"""Break each guard in turn and see it noticed: `python -m tests.mutants [--jobs J] [WORD…]`.

Guarantees exit status 1 if a mutant was not noticed, or its text has moved, and 2 if no mutant has
the words asked for; a run of all of them writes docs/mutants.md. Leaves the running to `grinding`.
"""

import argparse
import os
from collections.abc import Sequence

from tests.kit import programs
from tests.kit.programs import say
from tests.mutants.catalogue import MUTANTS
from tests.mutants.further import FURTHER
from tests.mutants.grinding import Result, failing_suites, grind
from tests.mutants.missed import MISSED
from tests.mutants.missed_of_lines import MISSED_OF_LINES
from tests.mutants.mutant import ROOT, Moved, Mutant

_TABLE = ROOT / "docs" / "mutants.md"
_HEAD = """\
# Mutants

Each line is the product with one guard broken, and the test that noticed. `make mutants` runs them
again, in copies of the tree, and writes this file; a mutant whose text has moved is an error.
Seconds are those of one run, its start included.

| mutant | what it breaks | where | first test that fails | s |
|---|---|---|---|---|
"""


def main() -> int:
    """Grind the chosen mutants; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("word", nargs="*", help="only mutants whose name has one of these words")
    jobs = max(1, (os.cpu_count() or 2) // 2)
    parser.add_argument("--jobs", type=programs.counted(1), default=jobs)
    parser.add_argument("--whole", action="store_true", help="run the suites unbroken, first")
    chosen = parser.parse_args()
    every = (*MUTANTS, *FURTHER, *MISSED, *MISSED_OF_LINES)
    mutants = [m for m in every if not chosen.word or any(w in m.name for w in chosen.word)]
    if not mutants:
        parser.error(f"no mutant has one of the words {chosen.word}; docs/mutants.md names them")
    try:
        for mutant in every:
            mutant.applied_to((ROOT / mutant.file).read_text(encoding="utf-8"))
    except Moved as exc:
        say(f"{exc}; move the mutant after it")
        return 1
    if chosen.whole:
        suites = sorted({suite for mutant in mutants for suite in mutant.suites})
        if failing := failing_suites(suites, jobs=chosen.jobs):
            say("fail without any mutant: " + "; ".join(failing))
            return 1
    results = [_told(result) for result in grind(mutants, jobs=chosen.jobs)]
    if len(results) == len(every):
        _TABLE.write_text(_HEAD + "".join(map(_row, results)), encoding="utf-8")
    missed = [result for result in results if result.caught_by is None]
    say(f"mutants: {len(results)} tried, {len(missed)} not noticed")
    return 1 if missed else 0


def _told(result: Result) -> Result:
    verdict = result.test if result.caught_by else "NOT NOTICED"
    say(f"{result.seconds:5.0f} s  {result.mutant.name:40} {verdict}")
    return result


def _row(result: Result) -> str:
    mutant: Mutant = result.mutant
    test = f"`{result.test.rsplit('::', 1)[-1]}`" if result.caught_by else "**none**"
    where = f"{mutant.file} → {result.caught_by or '-'}"
    cells: Sequence[str] = (mutant.name, mutant.breaks, where, test, f"{result.seconds:.0f}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    programs.run(main)
