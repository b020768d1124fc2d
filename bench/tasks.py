"""A Celery task that does nothing: the raw limit that idle starts are compared with."""

from __future__ import annotations

import time

import redis
from celery import shared_task


@shared_task(name="bench.noop", ignore_result=True)
def noop(redis_url: str, key: str) -> None:
    """Report the moment the task began. On repeat: reports again."""
    entered_ns = time.monotonic_ns()
    with redis.Redis.from_url(redis_url) as client:
        client.rpush(key, entered_ns)
