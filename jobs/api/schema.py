"""What the OpenAPI description says beyond the views: authentication, and strict requests.

Guarantees: importing this module registers all of it with drf-spectacular; the routes do so.
Leaves to others: authentication itself (``jobs.api.authentication``), answers
(``jobs.api.answers``).
"""

from typing import Any

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A tenant's token in the Authorization header."""

    target_class = "jobs.api.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:  # noqa: ARG002
        """Describe the scheme."""
        return {"type": "http", "scheme": "bearer"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A console session; writes also need the CSRF header."""

    target_class = "jobs.api.authentication.TenantSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:  # noqa: ARG002
        """Describe the scheme."""
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


class StrictRequests(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Requests whose unknown fields are refused say so."""

    target_class = "jobs.api.serializers.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Describe the fields, and that there are no others."""
        described = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**described, "additionalProperties": False}
