"""Every scenario of the crash matrix, by name.

Guarantees that the names cost no import: the code is loaded only where it runs, in the zygote.
"""

from importlib import import_module

from tests.crash.scenarios.scenario import Scenario

#: Name → module and class.
SCENARIOS: dict[str, tuple[str, str]] = {
    "linear": ("claims", "Linear"),
    "linear-without-redis": ("claims", "LinearWithoutRedis"),
    "dag": ("claims", "Wave"),
    "fail-and-replay": ("rounds", "FailAndReplay"),
    "sleep-and-resume": ("rounds", "SleepAndResume"),
    "start-or-resume": ("registering", "Start"),
    "supersede": ("registering", "Supersede"),
    "tick": ("minding", "Tick"),
    "reconcile": ("minding", "Reconcile"),
    "submit": ("dispatching", "Submit"),
    "retry": ("dispatching", "Retry"),
    "cancel": ("dispatching", "Cancel"),
    "dispatch-recovery": ("dispatching", "Recovery"),
    "dispatch-page": ("dispatching", "RecoveryPage"),
    "article": ("dispatching", "Article"),
    "permits": ("permits", "Permits"),
    "passed-permits": ("permits", "PassedPermits"),
    "crossing-permits": ("permits", "CrossingPermits"),
    "poison": ("poison", "Poison"),
    "quota-storm": ("storm", "QuotaStorm"),
}
#: The outbox in depth; on SQLite and on PostgreSQL.
OUTBOX: dict[str, tuple[str, str]] = {
    "regenerate": ("outbox", "Regenerate"),
    "regenerate-refused": ("outbox", "RegenerateRefused"),
    "generation-recovery": ("outbox", "GenerationRecovery"),
    "delete": ("outbox", "Delete"),
    "announce": ("outbox", "Announce"),
    "atomic-request": ("outbox", "AtomicRequest"),
    "submit-in-blocks": ("outbox", "SubmitInBlocks"),
    "retry-in-blocks": ("outbox", "RetryInBlocks"),
    "cancel-in-blocks": ("outbox", "CancelInBlocks"),
    "regenerate-in-blocks": ("outbox", "RegenerateInBlocks"),
    "delete-in-blocks": ("outbox", "DeleteInBlocks"),
}
#: Durable waiting in depth.
WAITING: dict[str, tuple[str, str]] = {
    "suspend-and-look": ("waiting", "SuspendAndLook"),
    "deliver": ("waiting", "Deliver"),
    "deliver-without-redis": ("waiting", "DeliverWithoutRedis"),
    "deliver-page": ("waiting", "DeliverPage"),
    "deliver-page-without-redis": ("waiting", "DeliverPageWithoutRedis"),
    "timers-due": ("waiting", "TimersDue"),
    "deliver-or-poll": ("waiting", "DeliverOrPoll"),
    "poll-and-late-signal": ("waiting", "PollAndLateSignal"),
    "match-by-reconcile": ("waiting", "MatchByReconcile"),
    "branching-waits": ("waiting", "Branching"),
    "fan-out": ("waiting", "FanOut"),
}
#: Those that are killed at every boundary; the others do the killing themselves.
MATRIX: tuple[str, ...] = tuple(name for name in SCENARIOS if name not in {"poison", "quota-storm"})
SCENARIOS |= OUTBOX | WAITING


def load(name: str) -> type[Scenario]:
    """Return a scenario's class; needs Django to be set up."""
    module, class_name = SCENARIOS[name]
    scenario: type[Scenario] = getattr(import_module(f"{__name__}.{module}"), class_name)
    return scenario


__all__ = ["MATRIX", "OUTBOX", "SCENARIOS", "WAITING", "Scenario", "load"]
