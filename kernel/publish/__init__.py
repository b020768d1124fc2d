"""Registers work: `start_or_resume`, the one idempotent entrance (design 1.4).

The request path, the recovery dispatcher, fan-outs and a user's retry all come through here, one by
one or a page at a time: an unordered bulk insert, one read of those that exist already, and the
same decision about each. The unique index on biz_key picks the winner of racing creations, the
fencing_token decides about rounds.

Guarantees that every item is registered or answered for, and that nothing is written of a call with
a bad item in it. A process that dies in the middle of a page leaves some registered and some not;
repeating the page registers the rest. Leaves to others: lanes and bells, which come after the
instance is stored, best effort (a lost hint is found by reconciliation).
"""

from __future__ import annotations

from kernel.publish.publisher import Publisher
from kernel.publish.rounds import StartItem, StartResult

__all__ = ["Publisher", "StartItem", "StartResult"]
