"""What a caller of the services may be told, each with a stable code.

```
ServiceError
├─ JobNotFound        no such job for this tenant (also for malformed ids)
├─ InvalidRequest     the input is wrong; `.problems` names each place
├─ NotRetryable       the job is over in a way no retry can change, or was refused
├─ RoundInProgress    the job is still working, or somebody else just started its next round
├─ AlreadyTerminal    a cancel came after the end
├─ KeyReused          the idempotency key belongs to another request
├─ KeyInProgress      the request with this idempotency key has not committed yet
├─ TokenReplaced      the token was rotated before, and its successor is in use
├─ EventClosed        the live event is over, in another way than asked for
├─ ChoiceNotOpen      the job offers no choice: not yet, or not any more
├─ ChoiceMade         another option was chosen before
└─ UnknownOption      the choice has no such option
```
"""

from dataclasses import dataclass
from datetime import datetime


class ServiceError(Exception):
    """A request the business refuses; nothing was written."""

    #: Stable identifier, safe to branch on.
    code = "service_error"


class JobNotFound(ServiceError):
    """There is no such job."""

    code = "not_found"

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__("There is no such job.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One wrong place in a request: a JSON pointer and a sentence."""

    pointer: str
    detail: str


class InvalidRequest(ServiceError):
    """The request says something that cannot be accepted."""

    code = "validation"

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.pointer}: {p.detail}" for p in problems))


class NotRetryable(ServiceError):
    """Only a failed job can be retried; `status` says what it is instead."""

    code = "not_retryable"

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"The job is {status}; only a failed job can be retried.")


class RoundInProgress(ServiceError):
    """A round of this job is under way; `status` is the job's."""

    code = "round_in_progress"

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"The job is {status}: a round is under way; wait for its end.")


class AlreadyTerminal(ServiceError):
    """The job ended before the cancel; `status` says how."""

    code = "already_terminal"

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"The job is {status} already; there is nothing left to cancel.")


class KeyReused(ServiceError):
    """The idempotency key was used for another request; `job_id` says for which job."""

    code = "idempotency_key_reused"

    def __init__(self, *, job_id: str, created_at: datetime) -> None:
        self.job_id = job_id
        self.created_at = created_at
        super().__init__("This Idempotency-Key was used with another request.")


class KeyInProgress(ServiceError):
    """The first request with this idempotency key has not committed yet; ask again."""

    code = "idempotency_in_progress"

    def __init__(self) -> None:
        super().__init__("The first request with this Idempotency-Key is still being stored.")


class TokenReplaced(ServiceError):
    """The token was rotated before, and the token issued for it is in use or revoked."""

    code = "token_replaced"

    def __init__(self) -> None:
        super().__init__("This token was rotated before, and its successor is in use.")


class QuotaExceeded(ServiceError):
    """The tenant may have no further round now; a round that fails or is canceled makes room."""

    code = "quota_exceeded"

    def __init__(self, tenant: str, *, limit: int, used: int) -> None:
        self.tenant = tenant
        self.limit = limit
        self.used = used
        super().__init__(f"The tenant's quota is used up: {used} of {limit} rounds.")


class EventClosed(ServiceError):
    """The live event is over; `status` says how."""

    code = "event_closed"

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"The event is {status} already, and stays as it is.")


class ChoiceNotOpen(ServiceError):
    """The job's round offers no choice; `status` is the job's."""

    code = "choice_not_open"

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"The job is {status} and offers no choice; read it to see when it does.")


class ChoiceMade(ServiceError):
    """Another option was chosen; `option` is the one that counts."""

    code = "choice_already_made"

    def __init__(self, option: str) -> None:
        self.option = option
        super().__init__(f"The option {option!r} was chosen before, and that choice is final.")


class UnknownOption(ServiceError):
    """The choice does not offer that; `known` is what it offers."""

    code = "unknown_option"

    def __init__(self, option: str, known: list[str]) -> None:
        self.known = known
        offered = ", ".join(known)
        super().__init__(f"There is no option {option[:60]!r}; choose one of: {offered}.")
