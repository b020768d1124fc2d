"""Celery's configuration: a transport for wakeups that is trusted with nothing.

Guarantees: JSON only; no results; no time limits; a busy child hoards no message beside an idle
one; publishing gives up within a fraction of a second when the broker is away, so that ringing
never holds an answer. Leaves to others: the tasks (``jobs.wakeups``) and what they mean
(``kernel``). Design 2.2, 2.3.
"""

import ssl
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

#: Messages older than this are dropped by the worker that reads them, seconds.
MESSAGE_EXPIRES_SECONDS = 3600
#: Queue of tick and reconcile; a worker of its own serves it.
CONTROL_QUEUE = "control"

_scheme = urlsplit(settings.BATON_BROKER_URL).scheme
_redis = _scheme in {"redis", "rediss"}

broker_url: str = settings.BATON_BROKER_URL
# Unreadable messages are set aside instead of ending the consumer.
broker_transport: str | None = "config.broker:QuarantineTransport" if _redis else None
# kombu would take rediss:// without this as plain text, or as TLS that checks nothing.
broker_use_ssl: dict[str, Any] | None = (
    {"ssl_cert_reqs": ssl.CERT_REQUIRED} if _scheme == "rediss" else None
)
broker_connection_retry_on_startup = True
broker_connection_retry = True
broker_connection_max_retries = None
broker_connection_timeout = 1
broker_transport_options: dict[str, Any] = (
    {
        "socket_connect_timeout": 1,
        # Longer than the consumer's blocking read of one second.
        "socket_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 30,
        "visibility_timeout": 12 * 3600,
        # Publishing does not retry by itself; a lost ring is repaired by tick.
        "max_retries": 0,
        "interval_start": 0,
        "interval_step": 0.1,
        "interval_max": 0.2,
        "global_keyprefix": f"{settings.BATON_KEY_PREFIX}:celery:",
    }
    if _redis
    else {"confirm_publish": False, "max_retries": 0, "interval_start": 0}
)
# Flower runs several inspections at once, and each needs two connections.
broker_pool_limit = 16

task_serializer = "json"
result_serializer = "json"
accept_content = ["json"]
event_serializer = "json"
task_ignore_result = True
task_store_errors_even_if_ignored = False
result_backend = None
task_publish_retry = False
task_default_queue = CONTROL_QUEUE
task_create_missing_queues = True
task_default_delivery_mode = "transient"
task_acks_late = not _redis
task_reject_on_worker_lost = False
task_time_limit = None
task_soft_time_limit = None
task_routes = {
    "baton.tick": {"queue": CONTROL_QUEUE},
    "baton.reconcile": {"queue": CONTROL_QUEUE},
}
task_send_sent_event = False

# A dead child is replaced within half a second.
worker_pool = "config.pool:AttentiveTaskPool"
worker_prefetch_multiplier = 1
worker_disable_prefetch = _redis
worker_hijack_root_logger = False
worker_redirect_stdouts = False
worker_cancel_long_running_tasks_on_connection_loss = False
worker_enable_remote_control = True
worker_send_task_events = False

enable_utc = True
timezone = "UTC"
imports = ["jobs.wakeups"]
beat_schedule = {
    "tick": {
        "task": "baton.tick",
        "schedule": 1.0,
        "options": {"queue": CONTROL_QUEUE, "expires": MESSAGE_EXPIRES_SECONDS},
    },
    "reconcile": {
        "task": "baton.reconcile",
        "schedule": 30.0,
        "options": {"queue": CONTROL_QUEUE, "expires": MESSAGE_EXPIRES_SECONDS},
    },
}
beat_max_loop_interval = 1
