"""How a row is laid out on the console.

Guarantees: every column is shown, the business facts before the intent's columns; JSON is shown as
JSON and as text. Leaves to others: who may look (the admins).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.html import format_html

from jobs.dispatch import ExactJSONField
from jobs.dispatch.mixin import own_columns


class WholeRow:
    """Mixin of an admin whose rows are only looked at."""

    model: Any

    def get_fieldsets(self, _request: HttpRequest, _obj: models.Model | None = None) -> Any:
        """Lay out all columns; the admin by itself leaves out those that no form may change."""
        intent = own_columns(self.model)
        fields = self.model._meta.concrete_fields
        facts = _names(field for field in fields if field.name not in intent)
        groups: list[Any] = [(None, {"fields": facts})]
        if intent:
            names = _names(field for field in fields if field.name in intent)
            groups.append(("Dispatch intent", {"fields": names}))
        return groups


def _names(fields: Iterable[models.Field[Any, Any]]) -> list[Any]:
    return [
        _as_json(field.name) if isinstance(field, ExactJSONField) else field.name
        for field in fields
    ]


def _as_json(name: str) -> Callable[[models.Model], str]:
    """Show a column as the JSON that it holds, not as Python would write it."""

    @admin.display(description=name.replace("_", " "))
    def shown(row: models.Model) -> str:
        value = getattr(row, name)
        if not value:
            return str(admin.site.empty_value_display)
        text = json.dumps(value, ensure_ascii=False, indent=2)
        return format_html('<pre style="margin: 0; white-space: pre-wrap">{}</pre>', text)

    # The page's classes and labels go by it.
    shown.__name__ = name
    return shown
