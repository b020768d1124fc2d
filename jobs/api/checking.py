"""Check a request's body against its shape.

Guarantees: what passes has the shape's fields and types; a command's body may be absent. Leaves to
others: reading bytes (``jobs.api.parsers``) and rules of the business (``jobs.services``).
"""

from typing import Any

from rest_framework.request import Request

from jobs.api.serializers import EmptyRequest


def checked(shape: type[Any], request: Request) -> dict[str, Any]:
    """Return the checked fields. Raises: ValidationError, Refusal."""
    data = request.data
    # DRF gives an empty form for an absent body.
    absent = hasattr(data, "keys") and not len(data)
    serializer = shape(data={} if absent and issubclass(shape, _MAY_BE_ABSENT) else data)
    serializer.is_valid(raise_exception=True)
    fields: dict[str, Any] = serializer.validated_data
    return fields


_MAY_BE_ABSENT = (EmptyRequest,)
