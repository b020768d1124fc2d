"""What a signal must be before it is recorded: five strict parts, and an id of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from kernel import limits
from kernel.errors import InvalidValue
from kernel.json_values import check_json
from kernel.model import Signal

_WORKFLOW_ID: Final = re.compile(r"wf_[0-9a-f]{32}")
_PARTS: Final = frozenset({"signal_id", "workflow_id", "signal_type", "wait_key", "generation"})


def read_signal(identity: Signal | Mapping[str, object]) -> Signal:
    """Return the signal that these parts name, strictly: no part is read as another type.

    Raises:
        InvalidValue: a part is missing, unknown or unusable.
    """
    if isinstance(identity, Signal):
        parts: dict[str, object] = identity.model_dump(include=set(_PARTS))
    elif isinstance(identity, Mapping):
        parts = dict(identity)
    else:
        raise InvalidValue("give a Signal, or a mapping of its parts", what="signal")
    if unknown := parts.keys() - _PARTS:
        named = ", ".join(sorted(map(repr, unknown)))[:100]
        raise InvalidValue(f"has no part {named}; parts are {sorted(_PARTS)}", what="signal")
    try:
        signal = Signal.model_validate(parts, strict=True)
    except ValidationError as exc:
        first = exc.errors()[0]
        raise InvalidValue(first["msg"], what=f"signal {first['loc'][0]}") from exc
    check_signal(signal)
    return signal


def check_signal(signal: Signal) -> None:
    """Raise InvalidValue unless every part of a signal's identity is usable."""
    if not _WORKFLOW_ID.fullmatch(signal.workflow_id):
        raise InvalidValue(
            "is no workflow id; use StartResult.workflow_id or workflow_id_of(biz_key)",
            what=f"workflow_id {signal.workflow_id[:60]!r}",
        )
    for name in ("signal_id", "signal_type", "wait_key"):
        text = getattr(signal, name)
        if not 0 < len(text) <= limits.SIGNAL_NAME_CHARACTERS or "\0" in text:
            raise InvalidValue(
                f"give 1 to {limits.SIGNAL_NAME_CHARACTERS} characters without NUL", what=name
            )
        check_json(text, limit_bytes=limits.CHECKPOINT_BYTES, what=name)
    if not 0 <= signal.generation < 2**63:
        raise InvalidValue("give the number of the wait, from 0", what="generation")


def is_same(one: Signal, other: Signal) -> bool:
    """Tell whether two signals of one id name the same workflow and wait."""
    return _wait_of(one) == _wait_of(other)


def refuse_second_use(signal: Signal) -> InvalidValue:
    """Return the refusal of an id that names another wait already."""
    return InvalidValue(
        "was used for another workflow or wait; every signal needs an id of its own",
        what=f"signal_id {signal.signal_id!r}",
    )


def _wait_of(signal: Signal) -> tuple[str, str, str, int]:
    return (signal.workflow_id, signal.signal_type, signal.wait_key, signal.generation)
