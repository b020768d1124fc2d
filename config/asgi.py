"""The ASGI application served by uvicorn.

Guarantees: Django is set up once, before the first request. Leaves to others: routing (``config.urls``).
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_asgi_application()
