"""Choose and write the representation: JSON, always.

Guarantees: a client that accepts only problem+json is served too; strings that UTF-8 cannot hold
never break an answer. Leaves to others: the shape of the answers (``jobs.api.presentation``).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from jobs.api.problems import JSON_MEDIA_TYPE


class ApiRenderer(BaseRenderer):
    """Compact JSON with escapes for everything beyond ASCII."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002 -- DRF's signature
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002 -- DRF's signature
    ) -> bytes:
        """Encode the answer; nothing for an answer without a body."""
        return b"" if data is None else encode(data)


class ApiNegotiation(DefaultContentNegotiation):
    """Count a client that accepts problem+json as one that understands JSON."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the renderer and its media type. Raises: NotAcceptable."""
        try:
            chosen: tuple[BaseRenderer, str] = super().select_renderer(
                request, renderers, format_suffix
            )
        except NotAcceptable:
            if JSON_MEDIA_TYPE not in request.META.get("HTTP_ACCEPT", ""):
                raise
            first = next(iter(renderers))
            return first, first.media_type
        return chosen


def encode(data: Any) -> bytes:
    """Return an answer's bytes; equal data give equal bytes: an ETag can be their hash."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()
