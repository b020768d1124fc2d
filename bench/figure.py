"""A measured figure: its median, the raw limit of the same run, and how it is shown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the report. `value` and `raw` share `unit`; `aim` is the design's, in words."""

    name: str
    value: float
    unit: str
    raw_name: str
    raw: float
    aim: str = ""
    #: What else was seen, e.g. the single repeats.
    note: str = ""

    @property
    def ratio(self) -> float:
        """The figure as a multiple of its raw limit."""
        return self.value / self.raw if self.raw else float("nan")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of a non-empty series."""
    ordered = sorted(values)
    rank = round(percent / 100 * (len(ordered) - 1))
    return ordered[rank]


def spread(values: Sequence[float]) -> str:
    """Show the repeats behind a median."""
    return "repeats " + " ".join(shown(value) for value in values)


def median(values: Sequence[float]) -> float:
    """Return the median of a non-empty series."""
    return float(statistics.median(values))


def shown(value: float) -> str:
    """Write a number with as many digits as it deserves."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(figures: Sequence[Figure]) -> str:
    """Lay the figures out as a markdown table."""
    head = ("figure", "measured", "raw limit of the same run", "ratio", "aim")
    rows = [
        (
            figure.name,
            f"{shown(figure.value)} {figure.unit}",
            f"{figure.raw_name}: {shown(figure.raw)} {figure.unit}",
            f"{figure.ratio:.2f}",
            figure.aim,
        )
        for figure in figures
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
