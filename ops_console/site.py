"""The console's admin site.

Guarantees: one site for business models and users, titled for operators.
Leaves to others: which models are on it (``ops_console.admin``).
"""

from django.contrib.admin import AdminSite


class OpsSite(AdminSite):
    """The admin site at ``/ops/``."""

    site_header = "Baton operations"
    site_title = "Baton"
    index_title = "What runs, and for whom"
    empty_value_display = "–"
