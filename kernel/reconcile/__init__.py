"""Looks at everything Redis or Celery may have lost, without being told (design 2.3).

`tick` every second serves the indexes in Redis; `reconcile` every 30 s works from MongoDB alone.
Each duty is one file, bounded per run, harmless to repeat, and independent of the others' failure.
"""

from __future__ import annotations

from kernel.reconcile.duties import Reconciler
from kernel.reconcile.ticking import Ticker

__all__ = ["Reconciler", "Ticker"]
