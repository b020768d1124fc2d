"""What activities do: each step follows a list of words, one a call, and says that it was entered.

Guarantees that calls are noted in order, with what woke them. Leaves the words to the case.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel import (
    ActivityContext,
    Definition,
    FinalizerContext,
    OnFailed,
    Plan,
    RetryPolicy,
    Sleep,
    Step,
    WaitForSignal,
    WorkflowCanceled,
    Yield,
)

Finalizer = Callable[[FinalizerContext], None]
#: Which resources steps need, by type; None: the workflow itself. Their names are a run's own.
NEEDS: Mapping[str, Mapping[str | None, str]] = {
    "gate": {"a": "x", "b": "x"},
    "both": {"a": "xy", "b": "y"},
    "pace": {"a": "r"},
    "pacy": {"a": "rx", "b": "xy"},
    "hall": {"a": "x", "b": "x", "c": "y"},
    "share": {None: "x", "b": "y"},
}
#: The words; after its last one a step comes home with `ok`. `full` closes the step's resources.
WORDS = ("ok", "fail", "fatal", "wait", "poll", "sleep", "yield", "cancel")
#: Seconds of every wait for time.
PAUSE_SECONDS = 60
SIGNAL = "told"
QUEUE = "any"


def resource(run: str, letter: str) -> str:
    """Return a resource's name in a run."""
    return f"{run}:{letter}"


def _named(letters: str) -> Callable[[Any], list[str]]:
    return lambda value: [resource(value["of"], letter) for letter in letters]


class Fatal(Exception):
    """An error that no retry can help."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One call of activity code; `woken_by` is a signal's id, or None."""

    step: str
    round: int
    attempt: int
    woken_by: str | None


@dataclass(slots=True)
class Script:
    """What the steps of one instance do, and what they did."""

    words: Mapping[str, Sequence[str]]
    of: str = ""
    entries: list[Entry] = field(default_factory=list)
    finalized: list[str] = field(default_factory=list)

    def enter(self, ctx: ActivityContext) -> Any:
        """Note a call and do what its word says."""
        number = sum(entry.step == ctx.step for entry in self.entries)
        woken_by = ctx.resume.signal_id if ctx.resume is not None else None
        self.entries.append(Entry(ctx.step, ctx.fencing_token, ctx.attempt, woken_by))
        words = self.words.get(ctx.step, ())
        match words[number] if number < len(words) else "ok":
            case "full":
                for letter in NEEDS.get(self.of, {}).get(ctx.step, ""):
                    ctx.capacity.cooldown(resource(ctx.input["of"], letter), PAUSE_SECONDS)
                raise RuntimeError("as the script says")
            case "fail":
                raise RuntimeError("as the script says")
            case "fatal":
                raise Fatal("as the script says")
            case "cancel":
                raise WorkflowCanceled("as the script says")
            case "sleep":
                return Sleep(PAUSE_SECONDS, checkpoint=number)
            case "yield":
                return Yield(checkpoint=number)
            case "wait" | "poll" as word:
                after = PAUSE_SECONDS if word == "poll" else None
                return WaitForSignal(SIGNAL, wait_key=ctx.step, poll_after=after, checkpoint=number)
            case _:
                return {"round": ctx.fencing_token, "call": number}

    def finalize(self, kind: str, ctx: FinalizerContext) -> None:
        """Note a finalizer's call; `fails` as the step's name of a finalizer makes it fail once."""
        self.finalized.append(kind)
        words = self.words.get(kind, ())
        number = self.finalized.count(kind) - 1
        if number < len(words) and words[number] == "fail":
            raise RuntimeError(f"as the script says, in round {ctx.fencing_token}")


class Scripts:
    """The scripts of all instances of this process, by biz_key."""

    def __init__(self) -> None:
        self.by_key: dict[str, Script] = {}

    def definitions(self) -> dict[str, Definition]:
        """Return the workflow types of all cases, by short name."""
        return {
            "one": self._definition("one", ["a"]),
            "line": self._definition("line", ["a", "b"]),
            "long": self._definition("long", ["a", "b", "c"]),
            "kept": self._definition("kept", ["a", "b"], finalizers=True),
            "fan": self._definition("fan", ["a", "b", "c"], {"a": [], "b": [], "c": ["a", "b"]}),
            "naf": self._definition(
                "naf", ["b", "a", "c"], {"a": [], "b": [], "c": ["a", "b"]}, finalizers=True
            ),
            "lax": self._definition("lax", ["a", "b"], on_failed=OnFailed.SKIP),
            "gate": self._definition("gate", ["a", "b"]),
            "both": self._definition("both", ["a", "b"], on_failed=OnFailed.SKIP),
            "pace": self._definition("pace", ["a", "b"]),
            "pacy": self._definition("pacy", ["a", "b"], finalizers=True),
            "hall": self._definition("hall", ["a", "b", "c"], {"a": [], "b": [], "c": ["a", "b"]}),
            "share": self._definition("share", ["a", "b"], finalizers=True),
        }

    def _definition(
        self,
        name: str,
        steps: list[str],
        depends_on: dict[str, list[str]] | None = None,
        *,
        finalizers: bool = False,
        on_failed: OnFailed = OnFailed.STOP,
    ) -> Definition:
        def enter(ctx: ActivityContext) -> Any:
            return self.by_key[ctx.biz_key].enter(ctx)

        retry = RetryPolicy(max_retry=1, backoff="fixed", initial=5, non_retryable=(Fatal,))

        def end(kind: str) -> Finalizer | None:
            def call(ctx: FinalizerContext) -> None:
                self.by_key[ctx.biz_key].finalize(kind, ctx)

            return call if finalizers else None

        plan = Plan(f"interleaving.{name}", queue=QUEUE, steps=steps, depends_on=depends_on)
        needs = NEEDS.get(name, {})

        def policy(step: str) -> Step:
            named = _named(needs[step]) if step in needs else None
            return Step(enter, retry=retry, on_failed=on_failed, traffic_resource=named)

        return Definition(
            plan,
            steps={step: policy(step) for step in steps},
            workflow_resources=_named(needs[None]) if None in needs else None,
            success_finalizer=end("success"),
            failure_finalizer=end("failure"),
        )
