"""Names that end up in database paths, keys and URLs: one rule for all of them."""

from __future__ import annotations

import re
from typing import Final

from kernel import limits
from kernel.errors import DefinitionError

_STEP: Final = re.compile(r"[a-z][a-z0-9_]*")
_DOTTED: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_QUEUE: Final = re.compile(r"[a-z][a-z0-9_-]*")


def check_step_name(name: object) -> str:
    """Return the step name, or raise DefinitionError saying what to write instead."""
    return _check(name, _STEP, "step name", "lower case letters, digits and _, e.g. 'fetch_page'")


def check_type(name: object) -> str:
    """Return the workflow type, or raise DefinitionError saying what to write instead."""
    return _check(name, _DOTTED, "workflow type", "dotted lower case, e.g. 'content.article'")


def check_queue(name: object) -> str:
    """Return the queue name, or raise DefinitionError saying what to write instead."""
    return _check(name, _QUEUE, "queue", "lower case letters, digits, _ and -, e.g. 'content'")


def _check(name: object, pattern: re.Pattern[str], what: str, example: str) -> str:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise DefinitionError(f"{what} {name!r} is not usable: write {example}")
    if len(name) > limits.NAME_CHARACTERS:
        raise DefinitionError(f"{what} {name[:20]!r}… is longer than {limits.NAME_CHARACTERS}")
    return name
