"""Liveness and readiness of the web process.

Guarantees: live means the process answers; ready means it can accept requests, which needs the
business database only. A store that is away is reported, not held against the process: requests
are accepted without it, and taking every web process out of rotation would lose them. The same
holds for work that stands still (something has been due for a minute in which no worker took
anything): `progress` says so for whoever watches. Leaves to others: who does the work.
"""

import logging

from django.db import Error, connection
from django.http import HttpRequest, JsonResponse

from jobs.runtime import get_kernel
from kernel import KernelError, Progress

log = logging.getLogger(__name__)

#: How long a probe waits for the workflow store.
STORE_TIMEOUT_SECONDS = 1.0


def live(_request: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the process answers at all."""
    return _answer({"status": "ok"}, 200)


def ready(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when requests can be accepted, 503 when not; each check by name."""
    database = _database_answers()
    progress = _progress()
    checks = {
        "database": "ok" if database else "unavailable",
        "store": "ok" if progress is not None else "unavailable",
        "progress": "unknown" if progress is None else _word(progress),
    }
    status = "ok" if database else "unavailable"
    if database and set(checks.values()) != {"ok"}:
        status = "degraded"
    return _answer({"status": status, "checks": checks}, 200 if database else 503)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        log.warning("business database unavailable", exc_info=error)
        return False
    return True


def _progress() -> Progress | None:
    try:
        return get_kernel().progress(timeout=STORE_TIMEOUT_SECONDS)
    except KernelError as error:
        log.warning("workflow store unavailable: %s", error)
        return None


def _word(progress: Progress) -> str:
    return "stalled" if progress.is_stalled else "ok"


def _answer(body: dict[str, object], status: int) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
