"""What the supervisor needs to know about one process.

Guarantees nothing; it is a value. Leaves the list of processes to `services`, running them to
`supervisor`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One child process: how to start it, how to know it is ready, when to start and to stop it."""

    #: Prefix of its log lines; unique in the stack.
    name: str
    command: tuple[str, ...]
    #: Added to the supervisor's own environment.
    env: Mapping[str, str] = field(default_factory=dict)
    #: It is ready when a line of its output matches; None means as soon as it runs.
    ready_pattern: str | None = None
    #: Names of those that have to be ready before it starts.
    start_after: tuple[str, ...] = ()
    #: Processes of a lower stage are stopped earlier; those of one stage together.
    stop_stage: int = 0
    #: Seconds it may take to end by itself before it is killed.
    stop_timeout: float = 10.0
