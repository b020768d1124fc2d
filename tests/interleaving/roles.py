"""What actors do, each as a process of its own that repeats what nobody answered.

Guarantees that a caller behaves as the documentation asks: what raised StoreUnavailable is repeated
with the same identity. Leaves when each acts to the schedule.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from kernel import Kernel, StoreUnavailable
from kernel.engine.committing import StopRequest
from kernel.keeper.freeing import free_claim
from kernel.protocol import owning
from tests.interleaving.run import Run
from tests.interleaving.schedule import Process, Unheld
from tests.interleaving.scripts import PAUSE_SECONDS, SIGNAL, resource

T = TypeVar("T")
#: A role on a process of a run; some take a word more, e.g. which signal.
Role = Callable[[Run, Process, Kernel, str], Any]
_TRIES = 6
#: Starts a second of a rate: one in more time than a schedule takes, so that only time's passing
#: makes room.
RATE = 0.002


def patiently(call: Callable[[], T]) -> T | None:
    """Call until there is an answer; None when there never was."""
    for _ in range(_TRIES):
        try:
            return call()
        except StoreUnavailable:
            continue
    return None


def work(run: Run, process: Process, kernel: Kernel, _: str) -> Any:
    """Run what is due."""
    return patiently(partial(kernel.drain, [run.queue], max_claims=6))


class _Asked(StopRequest):
    """A stop request that comes after some looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def is_set(self) -> bool:
        """Tell whether it has come."""
        self._looks -= 1
        return self._looks < 0


def stop(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Run what is due, and be asked to stop after as many looks as the word says: hand back."""
    machine = kernel._parts.machine
    asked = machine.stop
    object.__setattr__(machine, "stop", _Asked(int(word)))
    try:
        return patiently(partial(kernel.drain, [run.queue]))
    finally:
        object.__setattr__(machine, "stop", asked)


def start(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Register a round, as request, dispatcher and a user's retry do; the word is its number."""
    answers = []
    for key in run.keys:
        call = partial(
            kernel.start_or_resume, run.plan, biz_key=key, fencing_token=int(word),
            priority=int(word) % 2, input={"round": int(word), "of": run.name},
        )  # fmt: skip
        answers.append(patiently(call))
    return answers


def tell(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Deliver a signal; the word is `step:name`."""
    step, name = word.split(":")
    told = []
    for key in run.keys:
        signal_id = f"{key}:{name}"
        run.signals.add(signal_id)
        call = partial(
            kernel.deliver_signal, workflow_id=run.workflow_id(key), signal_type=SIGNAL,
            wait_key=step, signal_id=signal_id,
        )  # fmt: skip
        told.append(patiently(call))
    return told


def supersede(run: Run, process: Process, kernel: Kernel, _: str) -> Any:
    """End an obsolete generation."""
    calls = [partial(kernel.supersede, run.workflow_id(k), reason="obsolete") for k in run.keys]
    return [patiently(call) for call in calls]


def tick(run: Run, process: Process, kernel: Kernel, _: str) -> Any:
    """Serve timers and ended leases."""
    return patiently(kernel.tick)


def reconcile(run: Run, process: Process, kernel: Kernel, _: str) -> Any:
    """Look around."""
    return patiently(kernel.reconcile)


def free(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Free a holder's claim as the keeper of a dead child does; the word names the culprit."""
    culprit = {"nobody": owning.NOBODY, "": None}.get(word, word)
    freed = []
    for key in run.keys:
        token = _token(run, kernel, key)
        if token is not None:
            call = partial(
                free_claim, kernel._parts.store, kernel.hints, kernel._parts.permits.handing_on,
                workflow_id=run.workflow_id(key), token=token, culprit=culprit,
            )  # fmt: skip
            freed.append(patiently(call))
    return freed


def renew(run: Run, process: Process, kernel: Kernel, _: str) -> Any:
    """Renew the claims seen, as a keeper does that has not heard of their end."""
    tokens = [(run.workflow_id(key), _token(run, kernel, key)) for key in run.keys]
    claims = [(workflow_id, token) for workflow_id, token in tokens if token]
    return patiently(partial(kernel._parts.renewal.renew, claims))


def time_passes(run: Run, process: Process, kernel: Kernel, _: str) -> None:
    """Let leases, backoffs and waits be over, then start slots, cooldowns and overrides."""
    if isinstance(process, Unheld):
        run.let_all_pass()
        return
    for key in run.keys:
        process.pause()
        run.let_time_pass(key)
    if run.resources:
        process.pause()
        run.let_resources_pass()


def limit(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Set a limit; the word is `resource:limit`, 0 for none, with `!` an override for a while."""
    letter, value = word.rstrip("!").split(":")
    name = resource(run.name, letter)
    values: dict[str, Any] = {"max_concurrency": int(value)}
    if letter == "r":
        values = {"max_starts_per_second": RATE * int(value)}
    expires_in = PAUSE_SECONDS * 10 if word.endswith("!") else None
    if isinstance(process, Unheld):  # nobody waits yet, so that nobody need be looked for
        store = kernel._parts.permits.store
        return store.set_limits(name, values, by="", reason="", expires_ms=None, if_revision=None)
    return patiently(partial(kernel.capacity.set_limit, name, expires_in=expires_in, **values))


def pause(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Let nothing start on a resource."""
    return patiently(partial(kernel.capacity.pause, resource(run.name, word)))


def resume(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """End a pause."""
    return patiently(partial(kernel.capacity.resume, resource(run.name, word)))


def cool(run: Run, process: Process, kernel: Kernel, word: str) -> Any:
    """Close a resource for a while."""
    name = resource(run.name, word)
    return patiently(partial(kernel.capacity.cooldown, name, seconds=PAUSE_SECONDS * 10))


def _token(run: Run, kernel: Kernel, key: str) -> str | None:
    stored = patiently(partial(kernel._parts.store.read, run.workflow_id(key)))
    return stored.instance.claim_token if stored is not None else None


ROLES: dict[str, Role] = {
    role.__name__: role
    for role in (
        work,
        stop,
        start,
        tell,
        supersede,
        tick,
        reconcile,
        free,
        renew,
        time_passes,
        limit,
        pause,
        resume,
        cool,
    )
}
