"""Stored instances and signals as typed values, and those this version cannot read (design 1.3).

While a new version is rolled out, or after somebody wrote by hand, a document may hold what an
older process does not know. It is nobody's fault but its own: whoever reads many at once passes it
over and says so, whoever asks for it alone is told (`Unreadable`), and it waits for a process that
can read it. `manage.py verify` names the field.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from kernel.errors import Unreadable
from kernel.model import Signal, WorkflowInstance
from kernel.protocol.apply import Document
from kernel.store.codec import from_stored

log: Final = logging.getLogger("baton.store")

_Model = TypeVar("_Model", bound=BaseModel)


def instance_of(document: Document) -> WorkflowInstance:
    """Return a document, as it was handed in, as a typed value.

    Raises:
        Unreadable: this version does not know what stands in it.
    """
    return _as(WorkflowInstance, document, "workflow_id", "workflow instance")


def signal_of(row: Document) -> Signal:
    """Return a stored signal as a typed value.

    Raises:
        Unreadable: this version does not know what stands in it.
    """
    return _as(Signal, from_stored(row), "signal_id", "signal")


def legible(documents: Iterable[Document]) -> Iterator[tuple[Document, WorkflowInstance]]:
    """Yield those documents that can be read, each with its typed value; the rest is logged."""
    for document in documents:
        try:
            yield document, instance_of(document)
        except Unreadable as exc:
            log.error("passed over: %s", exc)


def legible_signals(rows: Iterable[Document]) -> Iterator[Signal]:
    """Yield those stored signals that can be read; the rest is logged."""
    for row in rows:
        try:
            yield signal_of(row)
        except Unreadable as exc:
            log.error("passed over: %s", exc)


def _as(model: type[_Model], document: Document, key: str, what: str) -> _Model:
    try:
        return model.model_validate(document)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"]))
        fault = f"{where}: {first['msg']}"
        raise Unreadable(str(document.get(key)), fault, what=what) from exc
