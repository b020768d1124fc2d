"""The ``Idempotency-Key`` header: what a key looks like, and what "the same request" means.

Guarantees: the quoted form of RFC 8941 and the bare form of one key are the same key; two requests
are the same when method, path and JSON value are, whatever white space or order of names they
were written with. Leaves to others: answering once (``jobs.services.idempotency``).
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from jobs.api.authentication import caller_of, tenant_of
from jobs.api.errors import Refusal
from jobs.api.renderers import encode
from jobs.models import ContentJob
from jobs.models.idempotency import KEY_CHARACTERS
from jobs.services.idempotency import Answer, Claim, answer_once

#: Shorter keys are too likely to be a counter or a word that is used twice.
KEY_CHARACTERS_MIN = 16
HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

#: Visible ASCII, without what a list of several header values would contain.
_BARE = re.compile(r"[!#-+\--~]+")
_QUOTED = re.compile(r'"((?:[!#-\[\]-~]|\\["\\])*)"')
_ESCAPED = re.compile(r'\\(["\\])')


def accept(
    request: Request,
    operation: str,
    body: object,
    perform: Callable[[], tuple[ContentJob, dict[str, Any]]],
) -> HttpResponse:
    """Perform an accepted call (202), once per key when the client sent one.

    ``perform`` returns the job and the body about it.

    Raises:
        Refusal: ``idempotency-key-malformed``.
        KeyReused, KeyInProgress: as ``jobs.services.idempotency.answer_once``.
    """
    key = key_of(request)
    if key is None:
        return _response(_answered(perform))
    claim = Claim(
        tenant=tenant_of(request),
        user_id=caller_of(request).pk,
        operation=operation,
        key=key,
        fingerprint=fingerprint(request.method or "", request.path, body),
    )
    answer, repeated = answer_once(claim, lambda: _answered(perform))
    response = _response(answer)
    if repeated:
        response[REPLAYED] = "true"
    return response


def key_of(request: Request) -> str | None:
    """Return the key, None when there is none. Raises: Refusal ``idempotency-key-malformed``."""
    sent = request.headers.get(HEADER)
    if sent is None:
        return None
    sent = sent.strip(" \t")
    if quoted := _QUOTED.fullmatch(sent):
        key = _ESCAPED.sub(r"\1", quoted[1])
    elif _BARE.fullmatch(sent):
        key = sent
    else:
        raise Refusal("idempotency-key-malformed")
    if not KEY_CHARACTERS_MIN <= len(key) <= KEY_CHARACTERS:
        raise Refusal("idempotency-key-malformed", f"This key has {len(key)} characters.")
    return key


def fingerprint(method: str, path: str, body: object) -> str:
    """Return the hex SHA-256 of a request. Equal JSON values give equal fingerprints."""
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(f"{method} {path}\n{canonical}".encode()).hexdigest()


def _answered(perform: Callable[[], tuple[ContentJob, dict[str, Any]]]) -> Answer:
    job, body = perform()
    return Answer(status=202, body=encode(body), location=body["links"]["self"], job_id=job.pk)


def _response(answer: Answer) -> HttpResponse:
    return HttpResponse(
        answer.body,
        status=answer.status,
        content_type="application/json",
        headers={"Location": answer.location},
    )
