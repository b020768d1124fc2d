"""What publishers know of these workflows.

Their input: `group` of the run, `resources` to be held, `ms` or `gate` of the call, and `ask` to
have the moment of the permit told to the provider.
"""

from kernel import Plan

#: Environment variable that names the provider.
PROVIDER = "CAPACITY_PROVIDER"
QUEUE = "proof"
#: Served by workers that one test starts, stops and kills.
ALONE_QUEUE = "alone"

CALLING = Plan("proof.calling", queue=QUEUE, steps=["call"])
ALONE = Plan("proof.alone", queue=ALONE_QUEUE, steps=["call"])
#: Holds its resources for its whole claim, over both calls.
HELD = Plan("proof.held", queue=QUEUE, steps=["first", "second"])
#: Needs no permit.
FREE = Plan("proof.free", queue=QUEUE, steps=["note"])
