"""Who is asking, and for which tenant, or as an operator.

Guarantees: a bearer token decides before a session does; a session writes only with its CSRF
token; a caller without a tenant sees nothing of any, and no tenant's token acts as an operator.
Leaves to others: tokens themselves (``jobs.services.access``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AbstractBaseUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from jobs.models import ApiToken
from jobs.services import access

if TYPE_CHECKING:
    # Views load the classes of this module from the settings.
    from rest_framework.views import APIView

_CHALLENGE = 'Bearer realm="baton"'


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer <token>``."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        """Return the token's user and the token; None when another scheme is used.

        Raises:
            AuthenticationFailed: the token is unknown, expired, revoked or malformed.
        """
        scheme, _, raw = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = access.authenticate(raw.strip())
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("The token is unknown, expired or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 -- DRF's signature
        """Return the challenge of a 401."""
        return _CHALLENGE


class TenantSessionAuthentication(SessionAuthentication):
    """A browser session of the console; writing needs the CSRF token."""

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 -- DRF's signature
        """Return the challenge of a 401."""
        return _CHALLENGE


class HasTenant(BasePermission):
    """Let in callers that belong to exactly one tenant."""

    message = "These credentials belong to no tenant, or to several; use a tenant's token."

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 -- DRF's
        """Judge the caller and remember its tenant on the request."""
        tenant = _tenant(request)
        request.tenant = tenant  # type: ignore[attr-defined]
        return tenant is not None


class IsOperator(BasePermission):
    """Let in tokens of the operators, and console users who were given the right."""

    message = (
        "This is for operators: use a token made with `manage.py create_token USER --ops`, or a"
        " console user with the permission."
    )

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 -- DRF's
        """Judge the caller; reading and changing are two permissions."""
        if isinstance(request.auth, ApiToken):
            return request.auth.ops
        wanted = "view_capacity" if request.method in SAFE_METHODS else "change_capacity"
        user = request.user
        return bool(user is not None and user.is_staff and user.has_perm(f"jobs.{wanted}"))


def tenant_of(request: Request) -> str:
    """Return the tenant that :class:`HasTenant` found."""
    tenant: Any = getattr(request, "tenant", None)
    assert isinstance(tenant, str), "the view lacks HasTenant"
    return tenant


def caller_of(request: Request) -> AbstractBaseUser:
    """Return the user that :class:`HasTenant` or :class:`IsOperator` let in."""
    assert isinstance(request.user, AbstractBaseUser), "the view lets anybody in"
    return request.user


def _tenant(request: Request) -> str | None:
    if isinstance(request.auth, ApiToken):
        return request.auth.tenant or None
    if request.user is not None and request.user.is_authenticated:
        return access.tenant_of_user(request.user)
    return None
