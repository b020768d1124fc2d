"""The Django app that gives the project its own management commands (`up`, `demo`).

Guarantees that every Django process has the Celery app as its current app, so a wakeup always goes
to the configured broker. Leaves everything else to the modules beside it.
"""

import importlib

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Register `config` with Django."""

    name = "config"
    verbose_name = "Baton project"

    def ready(self) -> None:
        """Load the Celery app. On repeat: nothing, the module is loaded once."""
        importlib.import_module("config.celery")
