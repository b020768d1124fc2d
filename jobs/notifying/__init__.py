"""The notification port's adapter: signed webhooks.

Guarantees: what is sent is signed with a secret of its tenant's own (`signing`), to public web
servers only, within bounds of time and size (`sender`). Leaves to others: when to try again
(`jobs.workflows.notify`), and what is sent (`jobs.services.notifications`). See docs/webhooks.md.
"""

from jobs.notifying.sender import WebhookSender
from jobs.notifying.signing import tenant_secrets

__all__ = ["WebhookSender", "tenant_secrets"]
