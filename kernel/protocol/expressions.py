"""What a commit may write, as values: the small language both the store and memory understand.

A change maps a dotted path of the instance to one of these expressions. The store compiles them
to an update pipeline on the database clock; `kernel.protocol.apply` evaluates the same ones on a
document in memory. A property test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Characters of a workflow_id at the end of its token.
TOKEN_TAIL: Final = 16


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant of the engine's own."""

    value: object


@dataclass(frozen=True, slots=True)
class Json:
    """A value somebody handed in; it comes back equal whatever its keys look like."""

    value: object


@dataclass(frozen=True, slots=True)
class Now:
    """The database's now, plus milliseconds."""

    plus_ms: int = 0


@dataclass(frozen=True, slots=True)
class FieldValue:
    """The present value of another field; removes the target where that field is missing."""

    path: str


@dataclass(frozen=True, slots=True)
class Span:
    """Milliseconds from the latest of the `start` fields to now, or to the `end` field if earlier.

    Missing fields do not count; never negative. At least one start must be present.
    """

    start: tuple[str, ...]
    end: str | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """The target's present number (0 if missing) plus another."""

    amount: int | Span


@dataclass(frozen=True, slots=True)
class Record:
    """A subdocument built from expressions."""

    fields: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Push:
    """The target list with one item appended, cut to its newest `keep`."""

    item: Expression
    keep: int


@dataclass(frozen=True, slots=True)
class WithoutSteps:
    """The target list of records without those whose `step` is one of these."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Earliest:
    """The earliest of some time fields, but never before now; missing fields do not count."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Latest:
    """The latest of some time fields, one of which must be present."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenUnder:
    """A claim token for each instance of a group: the seal, then the end of its workflow_id."""

    seal: str


@dataclass(frozen=True, slots=True)
class Unset:
    """The field is removed."""


Expression = (
    Lit
    | Json
    | Now
    | FieldValue
    | Span
    | Add
    | Record
    | Push
    | WithoutSteps
    | Earliest
    | Latest
    | TokenUnder
    | Unset
)
Changes = Mapping[str, Expression]
