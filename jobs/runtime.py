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
from kernel import Kernel, KernelConfig

#: Seconds after which an undelivered wakeup is worthless: the tick has looked by then.
WAKE_EXPIRES_SECONDS = 3600

_lock = threading.Lock()
#: The kernel and the process it was built in.
_built: tuple[int, Kernel] | None = None


def get_kernel() -> Kernel:
    """Return this process's kernel, building it on first use. On repeat: the same one."""
    global _built
    built = _built
    if built is not None and built[0] == os.getpid():
        return built[1]
    with _lock:
        if _built is None or _built[0] != os.getpid():
            _built = (os.getpid(), _build())
        return _built[1]


def close_kernel() -> None:
    """Close this process's kernel, if it built one. On repeat: nothing."""
    global _built
    with _lock:
        built, _built = _built, None
    if built is not None and built[0] == os.getpid():
        built[1].close()


@contextmanager
def using_kernel(kernel: Kernel) -> Iterator[Kernel]:
    """Let this process use a given kernel for a while; for tests and commands."""
    global _built
    before, _built = _built, (os.getpid(), kernel)
    register_plans(kernel)
    try:
        yield kernel
    finally:
        _built = before


def kernel_config() -> KernelConfig:
    """Give the configuration every process of this project uses."""
    return KernelConfig(
        mongo_url=settings.BATON_MONGO_URL,
        redis_url=settings.BATON_REDIS_URL,
        database=settings.BATON_DATABASE,
        key_prefix=settings.BATON_KEY_PREFIX,
        lease=settings.BATON_LEASE_SECONDS,
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
    kernel = Kernel.connect(kernel_config())
    register_plans(kernel)
    return kernel
