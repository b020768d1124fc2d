"""One broken guard, and which suites should notice."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

INTERLEAVE = "tests/interleaving"
UNIT = "tests/unit"
GUARDS = "tests/protocol/test_guards.py"
WAITING = "tests/waiting/test_interleavings.py"
UNCERTAIN = "tests/protocol/test_uncertain_answers.py"
ROUNDS = "tests/protocol/test_rounds.py"
RECOVERIES = "tests/protocol/test_recoveries.py"
GROUPS = "tests/protocol/test_groups.py"
RUNNING = "tests/protocol/test_running.py"
CAPACITY = "tests/capacity"
MOVES = "tests/dispatch/test_transitions.py"


class Moved(Exception):
    """The text a mutant replaces is not in its file exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`old` is replaced by `new` in `file`; `suites` run in order, up to the first failure."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    suites: tuple[str, ...]

    def applied_to(self, text: str) -> str:
        """Return a file's text with the guard broken.

        Raises:
            Moved: the text to replace is not there exactly once.
        """
        times = text.count(self.old)
        if times != 1:
            raise Moved(f"mutant {self.name!r}: its text is {times} times in {self.file}")
        return text.replace(self.old, self.new)
