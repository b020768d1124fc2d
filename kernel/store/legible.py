"""Stored instances as typed values, and those this version cannot read (design 1.3).

While a new version is rolled out, or after somebody wrote by hand, a document may hold what an
older process does not know. It is nobody's fault but its own: whoever reads many at once passes it
over and says so, whoever asks for it alone is told (`Unreadable`), and it waits for a process that
can read it. `manage.py verify` names the field.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import ValidationError

from kernel.errors import Unreadable
from kernel.model import WorkflowInstance
from kernel.protocol.apply import Document

log: Final = logging.getLogger("baton.store")


def instance_of(document: Document) -> WorkflowInstance:
    """Return a document, as it was handed in, as a typed value.

    Raises:
        Unreadable: this version does not know what stands in it.
    """
    try:
        return WorkflowInstance.model_validate(document)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"]))
        fault = f"{where}: {first['msg']}"
        raise Unreadable(str(document.get("workflow_id")), fault) from exc


def legible(documents: Iterable[Document]) -> Iterator[tuple[Document, WorkflowInstance]]:
    """Yield those documents that can be read, each with its typed value; the rest is logged."""
    for document in documents:
        try:
            yield document, instance_of(document)
        except Unreadable as exc:
            log.error("passed over: %s", exc)
