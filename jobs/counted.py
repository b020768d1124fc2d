"""A number with its noun, as commands and the console say it.

Guarantees: 1 is singular, everything else plural. Leaves to others: nouns whose plural is
irregular.
"""


def counted(number: int, noun: str) -> str:
    """Return "1 job" or "2 jobs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
