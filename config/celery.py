"""The Celery application ``config``: carries wakeups, owns nothing.

Guarantees: database clients are built in each pool child and never inherited over a fork; a child that
cannot reach a database at start still serves wakeups later. Leaves to others: configuration
(``config.settings.transport``), tasks (``jobs.wakeups``).
"""

import logging
import logging.config
import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

log = logging.getLogger(__name__)

app = Celery("config")
app.config_from_object("config.settings.transport")


@signals.setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Stop Celery from installing its own log format; Django's LOGGING is in force."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@signals.worker_process_init.connect
def _prepare_child(**_: Any) -> None:
    """Drop what came over the fork and load the activities this child will run."""
    from django.db import connections

    from jobs import worker

    for connection in connections.all(initialized_only=True):
        # Closing would send a goodbye on the parent's socket.
        connection.connection = None
    worker.start_child()


@signals.worker_process_shutdown.connect
def _close_child(**_: Any) -> None:
    """Close the child's clients after its last task."""
    from jobs import runtime

    runtime.close_kernel()
