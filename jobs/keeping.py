"""What a Celery worker does beside running wakeups: keep claims, poll, and stand in for beat.

In the worker's **main** process, which runs no activity code: the keeper's thread, from before the
pool starts until after it has ended; and a thread that runs tick and reconcile when nobody else has
for a while, because the broker, beat or the control worker may be dead together (design 2.4). In
each **child**: the slot through which wakeups and polling take turns.

Guarantees: nothing opened here crosses a fork; a failure here costs latency, never a result.
Leaves to others: what keeping means (`kernel.keeper`), which signals call this (`config.celery`).
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from billiard.process import current_process
from celery import current_app
from django.db import Error as DatabaseError
from django.db import close_old_connections, connections

from jobs import runtime, worker
from kernel import ClaimSlots, Keeper, KernelError, WorkerSlot

log = logging.getLogger(__name__)

#: Children a worker can have; more are kept by their own heartbeat.
CHILDREN_MAX = 128
#: Seconds of silence after which the main process ticks and reconciles itself.
TICK_SILENCE_SECONDS = 3.0
RECONCILE_SILENCE_SECONDS = 45.0
#: Seconds an idle child waits for a wakeup before it looks by itself.
POLL_SECONDS = 5.0
_WATCH_SECONDS = 1.0
_DISPATCHES = 200


@dataclass(slots=True)
class _Worker:
    """The keeping of this worker; children inherit `slots` over the fork and build their own."""

    slots: ClaimSlots | None = None
    keeper: Keeper | None = None
    watch_stopped: threading.Event = field(default_factory=threading.Event)
    slot: WorkerSlot | None = None


_worker = _Worker()


def start_main() -> None:
    """Begin keeping, before the pool forks its first child. On repeat: nothing."""
    if _worker.slots is not None:
        return
    _worker.slots = ClaimSlots(CHILDREN_MAX)
    kernel = runtime.get_kernel()
    worker.register_definitions(kernel)
    _worker.keeper = kernel.build_keeper(_worker.slots, queues=consumed_queues)
    _worker.keeper.start()
    threading.Thread(target=_watch_silence, name="baton-silence", daemon=True).start()


def request_stop() -> None:
    """Ask the children to finish their step, commit it, and hand their claims back."""
    if _worker.keeper is not None:
        _worker.keeper.request_stop()


def stop_main() -> None:
    """End keeping, after the pool has ended. On repeat: nothing."""
    _worker.watch_stopped.set()
    if _worker.keeper is not None:
        _worker.keeper.stop()
        _worker.keeper = None
        runtime.close_kernel()


def start_child() -> None:
    """Take this child's slot: its claims are published in it, and an idle child polls."""
    _worker.keeper = None  # the main process's, came over the fork
    index = getattr(current_process(), "index", None)
    if _worker.slots is not None and isinstance(index, int) and index < _worker.slots.children:
        runtime.keep_claims_in(_worker.slots, index)
    kernel = runtime.get_kernel()
    worker.register_definitions(kernel)
    kernel.free_left_behind()
    slot().start()


def stop_child() -> None:
    """Stop polling and close this child's clients."""
    if _worker.slot is not None:
        _worker.slot.stop()
        _worker.slot = None
    runtime.close_kernel()


def slot() -> WorkerSlot:
    """Return the slot of this process. On repeat: the same one."""
    if _worker.slot is None:
        kernel = runtime.get_kernel()
        worker.register_definitions(kernel)
        _worker.slot = kernel.build_slot(consumed_queues, poll_interval=POLL_SECONDS)
    return _worker.slot


def consumed_queues() -> Sequence[str]:
    """Return the queues this worker takes wakeups from, those that carry work only."""
    served = {definition.plan.queue for definition in worker.installed_definitions()}
    return sorted(served.intersection(current_app.amqp.queues.consume_from))


def recover_dispatches() -> None:
    """Send undelivered intents; part 4 of reconcile (design 2.3)."""
    from jobs.dispatch import recovery

    recovery.dispatch_due(limit=_DISPATCHES)


def _watch_silence() -> None:
    """Run in the main process: tick and reconcile, if nobody has for a while."""
    kernel = runtime.get_kernel()
    began = time.monotonic()
    while not _worker.watch_stopped.wait(_WATCH_SECONDS):
        _quietly("tick", lambda: kernel.tick(unless_within=TICK_SILENCE_SECONDS))
        _quietly("reconcile", lambda: _reconcile_if_silent(time.monotonic() - began))
        connections.close_all()  # a child forked later must find no open connection


def _reconcile_if_silent(listened: float) -> None:
    """Reconcile if nobody has for a while; `listened` is how many seconds this process has."""
    if runtime.get_kernel().reconcile(unless_within=RECONCILE_SILENCE_SECONDS).ran:
        if listened < RECONCILE_SILENCE_SECONDS:
            log.info("nobody had reconciled for a while: done while starting")
        else:
            log.warning("beat was silent: reconciled in the main process")
        recover_dispatches()


def _quietly(duty: str, call: Callable[[], object]) -> None:
    try:
        close_old_connections()
        call()
    except (KernelError, DatabaseError) as error:
        log.info("%s in the main process: %s", duty, error)
    except Exception:
        log.exception("%s in the main process failed", duty)
