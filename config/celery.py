"""The Celery application ``config``: carries wakeups, owns nothing.

Guarantees: database clients are built in each pool child and never inherited over a fork; a child
that cannot reach a database at start still serves wakeups later. Leaves to others: configuration
(``config.settings.transport``), tasks (``jobs.wakeups``).
"""

import contextlib
import logging.config
import os
from typing import Any

from celery import Celery, signals
from kombu.exceptions import OperationalError

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
            options["transport_options"] = {**short, **(options.get("transport_options") or {})}
        return super().connection_for_write(url, *args, **options)


app = WakeupCelery("config")
app.config_from_object("config.settings.transport")


@signals.setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Stop Celery from installing its own log format; Django's LOGGING is in force."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@signals.beat_init.connect
@signals.beat_embedded_init.connect
def _look_at_once(**_: Any) -> None:
    """Ask for a reconcile run at start, so that a restarted stack need not wait for the first."""
    with contextlib.suppress(OperationalError):
        app.send_task("baton.reconcile", ignore_result=True, expires=60, retry=False)


@signals.worker_init.connect
def _start_keeping(**_: Any) -> None:
    """Start the keeper in the main process, before the pool forks its first child."""
    from jobs import keeping

    keeping.start_main()


@signals.worker_shutting_down.connect
def _ask_to_stop(**_: Any) -> None:
    """A deploy: children finish their step and hand their claims back (design 2.2)."""
    from jobs import keeping

    keeping.request_stop()


@signals.worker_shutdown.connect
def _stop_keeping(**_: Any) -> None:
    """End the keeper after the pool has ended."""
    from jobs import keeping

    keeping.stop_main()


@signals.worker_process_init.connect
def _prepare_child(**_: Any) -> None:
    """Drop what came over the fork and load the activities this child will run."""
    from django.db import connections

    from jobs import keeping

    for connection in connections.all(initialized_only=True):
        # Closing would send a goodbye on the parent's socket.
        connection.connection = None
    keeping.start_child()


@signals.worker_process_shutdown.connect
def _close_child(**_: Any) -> None:
    """Close the child's clients after its last task."""
    from jobs import keeping

    keeping.stop_child()
