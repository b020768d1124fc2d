"""The errors a host meets, one tree, each with a stable code.

```
KernelError                     root; `code` is stable, the message says what to do
├─ UsageError                   the caller's mistake, never retried
│  ├─ DefinitionError           a plan or definition that cannot work
│  ├─ UnknownWorkflow           a type nobody registered here
│  ├─ NotAvailable              a capability this version does not have yet
│  ├─ NotAReplicaSet            the given MongoDB cannot keep the guarantees
│  └─ InvalidValue              a value that cannot be kept as it is
│     └─ ValueTooLarge          … because of its size
├─ NotFound                     no such instance
├─ RevisionConflict             somebody else changed it since it was read
├─ Unavailable                  try later, nothing is lost
│  ├─ StoreUnavailable          MongoDB did not answer
│  └─ HintsUnavailable          Redis did not answer
├─ NonRetryable                 raised by activities: fail at once
├─ StepTimeout                  an attempt outlived its step's timeout
└─ InvariantViolation           a fault of Baton itself: report it
WorkflowCanceled                raised by activities: this work should not go on
```

`WorkflowCanceled` derives from `BaseException`, so that an activity's `except Exception` cannot
swallow it. Losing a claim is an answer, not an error (design 1.4). Every code is listed in
docs/errors.md.
"""

from __future__ import annotations

from typing import ClassVar


class KernelError(Exception):
    """Something the kernel refused or could not do."""

    #: Stable identifier, at most 64 characters, safe to branch on.
    code: str = "kernel_error"


class UsageError(KernelError):
    """The call was wrong; repeating it cannot help."""

    code = "usage_error"


class DefinitionError(UsageError):
    """A plan or definition contradicts itself; the message says what to write instead."""

    code = "definition_error"


class UnknownWorkflow(UsageError):
    """The workflow type is not registered in this process."""

    code = "unknown_workflow"


class NotAvailable(UsageError):
    """This capability is designed but not part of this version."""

    code = "not_available"


class NotAReplicaSet(UsageError):
    """The MongoDB server is no replica set, so majority writes mean nothing."""

    code = "not_a_replica_set"


class InvalidValue(UsageError):
    """A value that could not be given back equal.

    `path` names the place inside the value (`$.items[3]`), `reason` says what is wrong with it.
    """

    code = "invalid_value"

    def __init__(self, reason: str, *, path: str = "$", what: str = "value") -> None:
        self.reason = reason
        self.path = path
        self.what = what
        super().__init__(f"{what} at {path}: {reason}")

    def within(self, place: str) -> InvalidValue:
        """Return the same refusal, naming in which of several values it was met."""
        return InvalidValue(self.reason, path=self.path, what=f"{place} {self.what}")


def unencodable(exc: UnicodeEncodeError, *, what: str = "text") -> InvalidValue:
    """Return the refusal of text with a lone surrogate, which no server can take."""
    shown = ascii(exc.object[:40])
    return InvalidValue(
        f"{shown} holds a lone surrogate, so it is not valid Unicode; replace or remove it",
        what=what,
    )


class ValueTooLarge(InvalidValue):
    """A value over its size limit; both figures are bytes of JSON."""

    code = "value_too_large"

    def __init__(self, *, size_bytes: int, limit_bytes: int, what: str = "value") -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(
            f"{size_bytes} bytes, the limit is {limit_bytes};"
            " store it elsewhere and pass a reference",
            what=what,
        )

    def within(self, place: str) -> ValueTooLarge:
        """Return the same refusal, naming in which of several values it was met."""
        return ValueTooLarge(
            size_bytes=self.size_bytes, limit_bytes=self.limit_bytes, what=f"{place} {self.what}"
        )


class NotFound(KernelError):
    """No instance has this identity."""

    code = "not_found"


class Unreadable(KernelError):
    """A stored instance, signal or resource holds what this version does not know; it is left so.

    A newer version wrote it, or a hand. `fault` names the field and what is wrong with it.
    """

    code = "unreadable"

    def __init__(self, subject: str, fault: str, *, what: str = "workflow instance") -> None:
        self.fault = fault
        super().__init__(
            f"{what} {subject!r} cannot be read by this version ({fault});"
            " ask a process of the version that wrote it"
        )


class RevisionConflict(KernelError):
    """What was to be changed is not as the caller saw it; nothing was written.

    `revision` is the current one: read again, decide again.
    """

    code = "revision_conflict"

    def __init__(self, what: str, *, revision: int, expected: int) -> None:
        self.revision = revision
        self.expected = expected
        super().__init__(
            f"{what} is at revision {revision}, not {expected}: somebody changed it meanwhile;"
            " read it again and decide again"
        )


class Unavailable(KernelError):
    """A server did not answer; try again later."""

    code = "unavailable"


class StoreUnavailable(Unavailable):
    """MongoDB did not answer in time; what was not confirmed may or may not be stored."""

    code = "store_unavailable"


class HintsUnavailable(Unavailable):
    """Redis did not answer in time; only speed is lost."""

    code = "hints_unavailable"


class NonRetryable(KernelError):
    """Raised by an activity whose failure no repetition can cure.

    `code` (at most 64 characters) ends up in the step's error.
    """

    code = "non_retryable"

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message or self.__doc__ or "")
        if code is not None:
            self.code = code


class StepTimeout(KernelError):
    """The attempt ran past its step's timeout and was cancelled."""

    code = "step_timeout"


class InvariantViolation(KernelError):
    """A promise of the kernel was broken; the instance is left untouched for a person."""

    code = "invariant_violation"


class WorkflowCanceled(BaseException):
    """Raised by an activity that finds its business object canceled or gone.

    The step is recorded as skipped and the instance ends canceled, without retry and without the
    failure finalizer (design 1.5).
    """

    code: ClassVar[str] = "workflow_canceled"
