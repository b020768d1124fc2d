"""The kernel of this process: built once from Django's settings, anew in every forked child.

Guarantees: no connection crosses a fork; every plan of every dispatch model is registered, and no
activity code is imported. Leaves to others: definitions (`jobs.worker`), and the settings' values.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery import current_app
from django.conf import settings
from django.db import close_old_connections

from jobs.dispatch.mixin import dispatch_models
from kernel import ClaimSlots, Kernel, KernelConfig

#: Seconds after which an undelivered wakeup is worthless: the tick has looked by then.
WAKE_EXPIRES_SECONDS = 3600


class _ProcessKernel:
    """The kernel of one process; a forked child starts with none."""

    def __init__(self) -> None:
        self.forget()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        # A lock held by another thread during the fork would stay locked in the child for ever.
        self.lock = threading.Lock()
        self.kernel: Kernel | None = None
        #: The keeper's slots and this child's place in them; set by `jobs.keeping`.
        self.child: tuple[ClaimSlots, int] | None = None


_process = _ProcessKernel()


def get_kernel() -> Kernel:
    """Return this process's kernel, building it on first use. On repeat: the same one."""
    if _process.kernel is None:
        with _process.lock:
            if _process.kernel is None:
                _process.kernel = _build()
    return _process.kernel


def keep_claims_in(slots: ClaimSlots, index: int) -> None:
    """Let the worker's keeper renew the claims of this child; before its kernel is built."""
    assert _process.kernel is None, "the kernel of this child is built already"
    _process.child = (slots, index)


def close_kernel() -> None:
    """Close this process's kernel, if it built one. On repeat: nothing."""
    with _process.lock:
        kernel, _process.kernel = _process.kernel, None
    if kernel is not None:
        kernel.close()


@contextmanager
def using_kernel(kernel: Kernel) -> Iterator[Kernel]:
    """Let this process use a given kernel for a while; for tests and commands."""
    register_plans(kernel)
    before, _process.kernel = _process.kernel, kernel
    try:
        yield kernel
    finally:
        _process.kernel = before


def kernel_config() -> KernelConfig:
    """Give the configuration every process of this project uses."""
    return KernelConfig(
        mongo_url=settings.BATON_MONGO_URL,
        redis_url=settings.BATON_REDIS_URL,
        database=settings.BATON_DATABASE,
        key_prefix=settings.BATON_KEY_PREFIX,
        lease=settings.BATON_LEASE_SECONDS,
        hang_grace=settings.BATON_HANG_GRACE_SECONDS,
        slots_per_child=settings.BATON_SLOTS_PER_CHILD,
        group_commits=settings.BATON_GROUP_COMMITS,
        types_off=frozenset(settings.BATON_TYPES_OFF),
        clock_offset_ms=settings.BATON_CLOCK_OFFSET_MS,
        ring=ring,
        around_activity=fresh_connections,
    )


def ring(queue: str) -> None:
    """Send one wakeup to a queue; it carries nothing but the queue's name (I3).

    Raises:
        Exception: the broker did not take it; the kernel counts on losing wakeups.
    """
    current_app.send_task(
        "baton.wake",
        args=[queue],
        queue=queue,
        ignore_result=True,
        expires=WAKE_EXPIRES_SECONDS,
        retry=False,
    )


@contextmanager
def fresh_connections() -> Iterator[None]:
    """Keep an activity's thread from using, or leaving behind, a dead database connection."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


def register_plans(kernel: Kernel) -> None:
    """Make the plans of every installed dispatch model known. On repeat: nothing new."""
    for model in dispatch_models():
        for plan in model.dispatch_plans:
            kernel.register_plan(plan)


def _build() -> Kernel:
    kernel = Kernel.connect(kernel_config(), child=_process.child)
    register_plans(kernel)
    return kernel
