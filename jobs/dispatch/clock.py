"""The one clock of the dispatch protocol: the database's.

Guarantees: every comparison and every stored moment comes from the same expression, shifted by the
setting `BATON_CLOCK_OFFSET_MS` (0 in production; tests use it to let time pass). Leaves to others:
nothing; no module of `jobs.dispatch` reads a process clock for a durable decision.
"""

from datetime import timedelta

from django.conf import settings
from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now


def db_now(plus: timedelta = timedelta(0)) -> Combinable:
    """Give the expression "the database's now, and `plus`", for filters and updates."""
    shift = timedelta(milliseconds=settings.BATON_CLOCK_OFFSET_MS) + plus
    if not shift:
        return Now()
    return ExpressionWrapper(Now() + Value(shift), output_field=DateTimeField())
