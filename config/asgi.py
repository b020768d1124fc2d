"""The ASGI application served by uvicorn.

Guarantees: Django is set up once, before the first request; no request's body grows without bound.
Leaves to others: routing (``config.urls``).
"""

import contextlib
import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django_application = get_asgi_application()

from django.db import DatabaseError, connection  # noqa: E402 -- apps must be loaded first

from jobs.api.body_limit import BodyLimit  # noqa: E402
from jobs.api.long_poll import LongPoll  # noqa: E402

if connection.vendor == "sqlite":
    # Each request's thread closes its connection; while another one is open, closing the last one
    # does not write the whole log back into the file.
    with contextlib.suppress(DatabaseError):
        connection.ensure_connection()

# Whitenoise serves a static file by reading it at once, which is what Django advises against here.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

application = BodyLimit(LongPoll(django_application))
