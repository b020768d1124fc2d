"""Names of the capacity resources the content workflows use (design 2.5).

Guarantees: importable by every process; no limit is set here, and a resource without one is
unlimited. Leaves to others: limits (`kernel.capacity`, set by operators), and which step needs
what (`jobs.workflows`).
"""

from typing import Any, Final

#: Fetching pages, over all sites.
WEB_CRAWLER: Final = "web_crawler"
#: Submitting recordings to the speech provider, and asking for their text.
SPEECH_RECOGNITION: Final = "speech_recognition"
#: Asking for summaries.
CONTENT_GENERATION: Final = "content_generation"

#: What steps name; a tenant's work has a resource of its own beside these.
RESOURCES: Final = (CONTENT_GENERATION, SPEECH_RECOGNITION, WEB_CRAWLER)


def tenant_work(tenant: str) -> str:
    """Name the resource that a tenant's rounds are held by while somebody works on them."""
    return f"tenant_work:{tenant}"


def tenant_work_of(request: Any) -> list[str]:
    """Name what a content workflow holds for as long as it is claimed, from its input.

    The input is the plan's model, or the stored dict of one an older release has written.
    """
    tenant = request["tenant"] if isinstance(request, dict) else request.tenant
    return [tenant_work(str(tenant))]
