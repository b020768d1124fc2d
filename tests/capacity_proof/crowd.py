"""A crowd behind one limit: more workflows than may call, more children than may call at once.

Guarantees: a report from what the provider saw and from the resource's own counters, nothing else.
Leaves to others: how large (`sizes`), where (`deployment`), and what is acceptable.
"""

from dataclasses import dataclass

from tests.capacity_proof.calls import displacement, lost, most_in_flight, utilisation, violations
from tests.capacity_proof.deployment import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a crowd looked like from outside."""

    workflows: int
    limit: int
    most: int
    #: Share of the limit that was used, from the first call to the end of the last.
    utilisation: float
    refused_per_granted: float
    #: Calls that began while the limit was reached, and workflows that called more than once.
    violations: int
    repeated: int
    #: Calls of lost claims, which are counted apart.
    lost: int
    #: How far a workflow called from its turn, at most.
    displacement: int

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"capacity: {self.workflows} workflows, max in flight {self.most}/{self.limit}, "
            f"utilisation {self.utilisation:.0%}".replace("%", " %")
            + f", refused per granted {self.refused_per_granted:.2f}, "
            f"violations {self.violations}"
        )


def run_crowd(
    deployment: Deployment, *, workflows: int, call_ms: int, limit: int, within: float
) -> Report:
    """Let a crowd through a limit and report. Raises: AssertionError when it is not through."""
    group = deployment.limited("crowd", max_concurrency=limit)
    names = deployment.crowd(group, workflows, ms=call_ms)
    deployment.all_ended(names, within=within)
    calls = deployment.provider.calls(group)
    status, apart = deployment.status(group), lost(calls)
    return Report(
        workflows=workflows,
        limit=limit,
        most=most_in_flight(calls, apart=apart),
        utilisation=utilisation(calls, limit),
        refused_per_granted=status.refused / status.granted,
        violations=violations(calls, limit, apart=apart),
        repeated=len(calls) - len(set(names)),
        lost=len(apart),
        displacement=displacement(calls, names),
    )
