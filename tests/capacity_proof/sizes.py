"""How large a run is: small by default, full size by environment (`make capacity`)."""

import os

#: Workflows of the crowd, how long each calls (milliseconds), how many may at once.
WORKFLOWS = int(os.environ.get("BATON_CAPACITY_WORKFLOWS", "60"))
CALL_MS = int(os.environ.get("BATON_CAPACITY_CALL_MS", "80"))
LIMIT = int(os.environ.get("BATON_CAPACITY_LIMIT", "8"))
#: Worker processes, pool children of each, and claims side by side in each child.
WORKERS = int(os.environ.get("BATON_CAPACITY_WORKERS", "2"))
CHILDREN = int(os.environ.get("BATON_CAPACITY_CHILDREN", "3"))
SLOTS = int(os.environ.get("BATON_CAPACITY_SLOTS", "2"))
#: Claims that may run at once; more than may call, else nothing would hold anybody back.
CLAIMS = WORKERS * CHILDREN * SLOTS
#: How far a workflow may call from its turn: others call while a slot is held up on a busy machine.
ORDER_KEPT = 2 * CLAIMS + LIMIT
#: Starts at each rate.
STARTS = int(os.environ.get("BATON_CAPACITY_STARTS", "4"))
#: Seconds a server is away.
OUTAGE = float(os.environ.get("BATON_CAPACITY_OUTAGE", "3"))
