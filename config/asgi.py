"""The ASGI application served by uvicorn.

Guarantees: Django is set up once, before the first request; no request's body grows without bound.
Leaves to others: routing (``config.urls``).
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django_application = get_asgi_application()

from jobs.api.body_limit import BodyLimit  # noqa: E402 -- apps must be loaded first
from jobs.api.long_poll import LongPoll  # noqa: E402

application = BodyLimit(LongPoll(django_application))
