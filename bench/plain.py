"""A Celery app with nothing in it: what a worker of the same size takes without Baton."""

from __future__ import annotations

import os

from celery import Celery

app = Celery("plain", broker=os.environ["BATON_BROKER_URL"])
app.conf.worker_hijack_root_logger = False
