"""A JSON column that gives back exactly what was put in, on every database.

Guarantees: the value is kept as ASCII text, so no server reorders keys, turns 1e16 into an
integer, loses a minus zero or refuses an escaped NUL, as native JSON columns do. Leaves to others:
refusing what cannot be kept anywhere (`kernel.check_json`), and queries into the value.
"""

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Expression


class ExactJSONField(models.TextField):  # type: ignore[type-arg]
    """Keeps a JSON object, an array or None; text given to it is read as JSON text."""

    description = "Exact JSON"
    #: What the type checker's Django plugin takes the attribute for.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(
        self, value: str | None, _expression: Expression, _connection: BaseDatabaseWrapper
    ) -> Any:
        """Read the stored text."""
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        """Accept JSON text (fixtures, forms) or the value itself.

        Raises:
            ValidationError: text that is no JSON.
        """
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError as exc:
            raise ValidationError(f"This is not JSON: {exc}") from exc

    def get_prep_value(self, value: Any) -> Any:
        """Write compact ASCII; NaN and infinities are refused here as the last line of defence."""
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))

    def value_to_string(self, obj: models.Model) -> str:
        """Give the stored text to serializers."""
        return str(self.get_prep_value(self.value_from_object(obj)))
