"""How the OpenAPI description names the two ways to authenticate.

Guarantees: importing this module registers both with drf-spectacular; the routes do so.
Leaves to others: authentication itself (``jobs.api.authentication``).
"""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


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
