"""What publishers know of these workflows."""

from kernel import Plan

QUEUE = "trust"
SLOW_QUEUE = "slow"

CHAIN = Plan("trust.chain", queue=QUEUE, steps=["one", "two", "three"])
GATED = Plan("trust.gated", queue=QUEUE, steps=["gate", "after"])
SLOW = Plan("trust.slow", queue=SLOW_QUEUE, steps=["gate", "after"])
DEAF = Plan("trust.deaf", queue=QUEUE, steps=["hang"])
REGEX = Plan("trust.regex", queue=QUEUE, steps=["hang"])
GREEDY = Plan("trust.greedy", queue=QUEUE, steps=["hold", "after"])
SLEEPY = Plan("trust.sleepy", queue=QUEUE, steps=["nap"])
