"""The checkpoint of a task at an external provider, and what its state decides.

```
woken ─▶ past the deadline?  give up: speech_deadline
      ─▶ past the task's TTL? the provider has forgotten it: speech_task_expired
      ─▶ ask ─▶ succeeded: keep, complete     failed: speech_failed
             ─▶ queued, running: wait again   unknown: speech_task_lost
             └▶ no answer: failures + 1, wait again; past the tolerance: speech_unreachable
```

Guarantees: everything needed to follow the task is in the stored value, terms included, so another
worker, another setting or another release follows it in the same way. Leaves to others: asking
(`jobs.activities.transcribing`). Pure. Design 4.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from jobs.ports import SpeechFailedForNow, SpeechTerms
from kernel import NonRetryable

#: Longest wait between two questions, whatever the provider asks for, seconds.
DELAY_MAX = 300.0
#: Longest id a provider may give, characters.
TASK_ID_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedTask:
    """A task that was submitted; times are Unix seconds."""

    #: Name of the provider that gave the id; later questions go to it, whatever the settings say.
    provider: str
    task_id: str
    submitted_at: float
    #: When the step gives up.
    deadline: float
    #: When the provider forgets the task.
    expires_at: float
    #: Seconds between two questions.
    interval: float
    #: Questions in a row that may fail, and how many have.
    tolerance: int
    failures: int = 0
    #: What was asked for, as it was when it was submitted.
    options: dict[str, Any]

    @classmethod
    def begin(
        cls, *, provider: str, task_id: str, now: float, terms: SpeechTerms, options: dict[str, Any]
    ) -> Self:
        """Give the value a submission at `now` is followed by."""
        return cls(
            provider=provider,
            task_id=task_id,
            submitted_at=now,
            deadline=now + terms.deadline,
            expires_at=now + terms.task_ttl,
            interval=terms.interval,
            tolerance=terms.tolerance,
            options=options,
        )

    @classmethod
    def load(cls, checkpoint: dict[str, Any]) -> Self:
        """Read a stored checkpoint; fields of a later release are ignored."""
        return cls(**{name: checkpoint[name] for name in cls.__slots__ if name in checkpoint})

    def dump(self) -> dict[str, Any]:
        """Give the checkpoint to store."""
        return asdict(self)

    def check_time(self, now: float) -> None:
        """Decide what time alone decides.

        Raises:
            NonRetryable: the deadline has passed.
            SpeechFailedForNow: the provider has forgotten the task; another attempt submits anew.
        """
        if now >= self.deadline:
            raise NonRetryable(
                f"The recording was not recognised within {self.deadline - self.submitted_at:g} s"
                f" of its submission (task {self.task_id} at {self.provider}).",
                code="speech_deadline",
            )
        if now >= self.expires_at:
            raise SpeechFailedForNow(
                f"The provider {self.provider} keeps a task's result for"
                f" {self.expires_at - self.submitted_at:g} s, and nobody asked for"
                f" {self.task_id} in time.",
                code="speech_task_expired",
            )

    def answered(self) -> Self:
        """The provider answered: failures are counted from zero again."""
        return replace(self, failures=0)

    def unanswered(self, why: str) -> Self:
        """Count a question without an answer.

        Raises:
            NonRetryable: too many in a row.
        """
        if self.failures >= self.tolerance:
            raise NonRetryable(
                f"The speech provider {self.provider} could not be asked for {self.task_id},"
                f" {self.failures + 1} times in a row; the last time: {why}",
                code="speech_unreachable",
            )
        return replace(self, failures=self.failures + 1)

    def delay(self, *, wanted: float | None = None) -> float:
        """Seconds until the next question: the interval, longer after failures or when asked to."""
        patient = self.interval * float(2 ** min(self.failures, 5))
        return float(min(max(patient, wanted or 0.0), max(DELAY_MAX, self.interval)))
