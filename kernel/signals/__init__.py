"""Delivers signals: record the facts, then try to wake whoever waits for them (design 4).

A page of signals takes the steps of one together, each a single command for all of them: record →
read the instances → read the signals → wake, every instance under its own guard → put the woken
into their lanes → mark. A lone signal is a page of one.

| killed between | facts left | who completes it |
|---|---|---|
| record / wake | pending signals + matching waits | the suspender's own look, or reconcile |
| wake / mark | the steps' `woken_by` names them | whoever claims next; no second wake |
| suspend / look | waits + older pending signals | reconcile |

In the middle of a bulk command the same holds for each of its statements. When fewer guards held
than were sent, nobody asks which: the instances are read again, those that were woken say so by
`woken_by`, and the others get their next try.
"""

from __future__ import annotations

from kernel.signals.delivery import SignalDelivery
from kernel.signals.identity import check_signal, read_signal

__all__ = ["SignalDelivery", "check_signal", "read_signal"]
