"""The Django app of the reference business."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Registers the models of `jobs`."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Content jobs"
