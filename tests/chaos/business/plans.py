"""What publishers know of the soak's workflows."""

from kernel import Plan

QUEUE = "chaos"

LINE = Plan("chaos.line", queue=QUEUE, steps=["one", "two", "three"])
WAVE = Plan(
    "chaos.wave",
    queue=QUEUE,
    steps=["root", "left", "right", "join"],
    depends_on={"root": [], "left": ["root"], "right": ["root"], "join": ["left", "right"]},
)
FLAKY = Plan("chaos.flaky", queue=QUEUE, steps=["before", "flaky", "after"])
SLEEPY = Plan("chaos.sleepy", queue=QUEUE, steps=["nap", "after"])
LISTENER = Plan("chaos.listener", queue=QUEUE, steps=["listen", "after"])
FANOUT = Plan("chaos.fanout", queue=QUEUE, steps=["ring"])
QUITTER = Plan("chaos.quitter", queue=QUEUE, steps=["work", "quit", "never"])

LIMITED = Plan("chaos.limited", queue=QUEUE, steps=["before", "call", "after"])

ALL = (LINE, WAVE, FLAKY, SLEEPY, LISTENER, FANOUT, QUITTER, LIMITED)
#: Steps whose code returns a directive and is entered again with the same attempt.
RESUMED = frozenset({"nap", "listen", "ring"})
EVENT = "chaos.event"
#: The resource outside that only so many calls may use at once.
RESOURCE = "chaos.api"
CALLS_AT_ONCE = 2


def listener(event: str, number: int) -> str:
    """Return the biz_key of a listener to an event."""
    return f"{event}:listener:{number}"
