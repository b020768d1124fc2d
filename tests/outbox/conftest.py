"""The fixtures of the dispatch and job tiers, and a kernel that also notifies."""

import pytest

from jobs.activities.notify import NotifyPorts
from jobs.notifying import WebhookSender
from jobs.workflows.notify import notify_definition
from kernel import Kernel
from tests.dispatch.conftest import database_time, dead_kernel, kernel
from tests.jobs.conftest import serving, site

__all__ = ["database_time", "dead_kernel", "kernel", "serving", "site"]

#: What the tests' secrets are derived from.
KEY = "a key of the tests, long enough to look like one"


@pytest.fixture
def notifying(serving: Kernel) -> Kernel:
    """The test's kernel, serving both workflows; local receivers are allowed."""
    sender = WebhookSender(keys=[KEY], allow_private=True, timeout=3)
    serving.register(notify_definition(NotifyPorts(notifier=sender)))
    return serving
