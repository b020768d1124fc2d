"""The product's own checks (`kernel.verifying`, `jobs.verifying`), as sentences for tests.

Guarantees that tests of every tier judge as `manage.py verify` does. Leaves the rules to the
product; only hints in Redis, which may rot in production, are judged here.
"""

from collections import Counter
from collections.abc import Iterable

from jobs import verifying
from kernel import WorkflowInstance
from kernel.verifying import of_instance as findings_of


def of_instance(instance: WorkflowInstance) -> list[str]:
    """Return what contradicts the protocol in one instance."""
    return [str(finding) for finding in findings_of(instance)]


def of_instances(instances: Iterable[WorkflowInstance]) -> list[str]:
    """Return what contradicts the protocol in any instance, or between them (I2)."""
    all_of_them = list(instances)
    keys = Counter(instance.biz_key for instance in all_of_them)
    doubled = [f"{key}: {n} instances of one biz_key" for key, n in keys.items() if n > 1]
    return doubled + [line for instance in all_of_them for line in of_instance(instance)]


def of_intent(status: str | None, number: int, instance: WorkflowInstance | None) -> list[str]:
    """Return what contradicts the outbox: a row's dispatch status and round, and its instance."""
    standing = None if instance is None else (instance.status, instance.fencing_token)
    return verifying.of_intent(status, number, standing)


def of_hints(keys: Iterable[str]) -> list[str]:
    """Return which hints are left in Redis when nothing is running, waiting or queued any more."""
    kinds = (":ready:", ":timers", ":leases")
    return [f"left in Redis: {key}" for key in keys if any(kind in key for kind in kinds)]
