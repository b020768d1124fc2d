"""Names of capacity resources: one rule, and who names which (design 2.5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from kernel import limits
from kernel.errors import DefinitionError, InvalidValue

#: A name, a list of names, or a callable of the input giving either, or None for no resource.
Resources = str | Sequence[str] | Callable[[Any], str | Sequence[str] | None] | None

_NAME: Final = re.compile(rf"[A-Za-z0-9_.:@-]{{1,{limits.RESOURCE_NAME_CHARACTERS}}}")
_LETTER_OR_DIGIT: Final = re.compile(r"[A-Za-z0-9]")


def check_resource(name: object) -> str:
    """Return the resource name.

    Raises:
        InvalidValue: it is none; the message says what to write instead.
    """
    if is_resource(name):
        return str(name)
    shown = repr(name) if not isinstance(name, str) or len(name) <= 60 else f"{name[:60]!r}…"
    raise InvalidValue(
        f"{shown} names no resource: use 1 to {limits.RESOURCE_NAME_CHARACTERS} letters, digits"
        " and _ . : @ -, with a letter or digit among them, e.g. 'web_crawler' or 'tenant_work:t1'",
        what="capacity resource",
    )


def is_resource(name: object) -> bool:
    """Tell whether a resource may have this name.

    It is a part of addresses, where clients take `.` and `..` for steps on the way.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return False
    return _LETTER_OR_DIGIT.search(name) is not None


def checked_resources(named: object) -> tuple[str, ...]:
    """Return resource names in the order in which they are acquired, each once.

    Raises:
        InvalidValue: not a name, a list of names or None, or too many of them.
    """
    if named is None:
        return ()
    if isinstance(named, str):
        return (check_resource(named),)
    if not isinstance(named, list | tuple | set | frozenset):
        raise InvalidValue(
            f"give a name or a list of names, not {type(named).__name__}", what="capacity resource"
        )
    names = tuple(sorted({check_resource(name) for name in named}))
    if len(names) > limits.RESOURCES_PER_OWNER:
        raise InvalidValue(
            f"{len(names)} resources for one step; at most {limits.RESOURCES_PER_OWNER}",
            what="capacity resource",
        )
    return names


def declared(resources: Resources) -> Resources:
    """Return what a step declares, its names checked; a callable is checked when it answers.

    Raises:
        DefinitionError: a bad name, or something that names nothing.
    """
    if callable(resources):
        return resources
    try:
        return checked_resources(resources) or None
    except InvalidValue as exc:
        raise DefinitionError(f"traffic_resource: {exc}") from exc


def resources_for(resources: Resources, value: Any) -> tuple[str, ...]:
    """Return the names for one input.

    Raises:
        InvalidValue: the callable answered with something that names nothing.
    """
    return checked_resources(resources(value) if callable(resources) else resources)
