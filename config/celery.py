"""The Celery application ``config``: carries wakeups, owns nothing.

Guarantees: database clients are built in each pool child and never inherited over a fork; a child
that cannot reach a database at start still serves wakeups later. Leaves to others: configuration
(``config.settings.transport``), tasks (``jobs.wakeups``).
"""

import logging.config
import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

#: How long one publish may take to connect, and then to be answered, seconds.
PUBLISH_TIMEOUT_SECONDS = 0.3


class WakeupCelery(Celery):
    """Celery whose publishing connections give up early; consuming ones wait for messages."""

    def connection_for_write(self, url: str | None = None, *args: Any, **options: Any) -> Any:
        """Return a connection to publish with."""
        if "socket_timeout" in self.conf.broker_transport_options:
            short = dict.fromkeys(
                ("socket_timeout", "socket_connect_timeout"), PUBLISH_TIMEOUT_SECONDS
            )
            options["transport_options"] = {**short, **options.get("transport_options", {})}
        return super().connection_for_write(url, *args, **options)


app = WakeupCelery("config")
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

    from jobs import wakeups

    for connection in connections.all(initialized_only=True):
        # Closing would send a goodbye on the parent's socket.
        connection.connection = None
    wakeups.worker_kernel()


@signals.worker_process_shutdown.connect
def _close_child(**_: Any) -> None:
    """Close the child's clients after its last task."""
    from jobs import runtime

    runtime.close_kernel()
