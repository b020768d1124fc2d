"""The worker's side of one step: the activity and the policy around it (design 1.5, 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kernel import limits
from kernel.definition.resources import Resources, declared, resources_for
from kernel.definition.retry import RetryPolicy
from kernel.directives import Seconds, as_seconds
from kernel.errors import DefinitionError, InvalidValue

#: Sync or async; takes an ActivityContext; returns a JSON value or a directive.
Activity = Callable[[Any], Any]


class OnFailed(StrEnum):
    """What a step's final failure means for its workflow."""

    STOP = "stop"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Step:
    """An activity with its timeout (seconds for ONE call), retries and capacity resources.

    `traffic_resource` is a name, a list of names, or a callable of the input giving either or None;
    the step runs while it holds a permit of each (design 2.5).

    Raises:
        DefinitionError: no callable activity, a timeout that is none, or a bad resource name.
    """

    activity: Activity
    timeout: Seconds = field(default=60, kw_only=True)
    retry: RetryPolicy = field(default_factory=RetryPolicy, kw_only=True)
    on_failed: OnFailed = field(default=OnFailed.STOP, kw_only=True)
    traffic_resource: Resources = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.activity):
            raise DefinitionError(f"a step needs a callable activity, not {self.activity!r}")
        try:
            seconds = as_seconds(self.timeout, what="timeout")
        except InvalidValue as exc:
            raise DefinitionError(str(exc)) from exc
        if not 0 < seconds <= limits.TIMEOUT_SECONDS_MAX:
            raise DefinitionError(
                f"timeout must be more than 0 and at most {limits.TIMEOUT_SECONDS_MAX} seconds;"
                " a longer wait belongs in Sleep or WaitForSignal"
            )
        object.__setattr__(self, "timeout", seconds)
        object.__setattr__(self, "on_failed", _on_failed(self.on_failed))
        object.__setattr__(self, "traffic_resource", declared(self.traffic_resource))

    @property
    def timeout_seconds(self) -> float:
        """The timeout of one call, in seconds."""
        return as_seconds(self.timeout, what="timeout")

    def resources(self, value: Any) -> tuple[str, ...]:
        """Return the resources one call needs, sorted; `value` is what it gets as `ctx.input`.

        Raises:
            InvalidValue: the callable named something that is no resource.
        """
        return resources_for(self.traffic_resource, value)


def _on_failed(value: object) -> OnFailed:
    try:
        return OnFailed(str(value))
    except ValueError as exc:
        raise DefinitionError(
            f"on_failed must be OnFailed.STOP or OnFailed.SKIP, not {value!r}"
        ) from exc
