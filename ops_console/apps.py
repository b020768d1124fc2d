"""The two Django apps of the console: its own app, and the admin with our site as the default one.

Guarantees: ``admin.site`` is :class:`ops_console.site.OpsSite`, so that every ``ModelAdmin`` in
the project lands on the console. Leaves to others: the admins themselves (``ops_console.admin``).
"""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class OpsAdminConfig(admin_apps.AdminConfig):
    """Django's admin, with the console as its site."""

    default = False
    default_site = "ops_console.site.OpsSite"


class OpsConsoleConfig(AppConfig):
    """The console's own templates and admins."""

    default = True
    name = "ops_console"
    verbose_name = "Operations"
