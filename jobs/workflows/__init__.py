"""The definitions of the reference business, as workers find them.

Guarantees: imported by workers only (`jobs.worker`); an app's `workflows` module offers
`definitions()`. Leaves to others: the plans (`jobs.plans`), which publishers import.
"""

from jobs.activities.notify import notify_ports_from_settings
from jobs.activities.outside import ports_from_settings
from jobs.workflows.article import article_definition
from jobs.workflows.audio import audio_definition
from jobs.workflows.digest import digest_definition
from jobs.workflows.fanout import fanout_definition
from jobs.workflows.live import live_definition
from jobs.workflows.notify import notify_definition
from jobs.workflows.watch import watch_definition
from kernel import Definition


def definitions() -> list[Definition]:
    """Build every definition of this app, its ports taken from the settings."""
    ports = ports_from_settings()
    return [
        article_definition(ports),
        audio_definition(ports),
        live_definition(ports),
        digest_definition(ports),
        watch_definition(),
        fanout_definition(),
        notify_definition(notify_ports_from_settings()),
    ]
