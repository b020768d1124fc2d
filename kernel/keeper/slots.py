"""Shared memory between a worker's main process and its children: one writer an area, no lock.

A child's area holds two copies of what it publishes, and a version whose parity says which of them
counts. The child writes the other copy and then turns the version, so whatever stops it half-way (a
death, or a sibling thread that keeps the GIL) leaves the last whole copy in force. The keeper's
areas hold its beat, the stop request and, beside each child, the tokens it found lost.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import Final

from kernel import limits
from kernel.keeper.processes import Process

#: Claims one child can publish at once.
CLAIMS: Final = limits.SLOTS_PER_CHILD

# Native formats: only they store a number in one piece, so that it is never seen half written.
_BEAT: Final = struct.Struct("@d")  # the keeper's beat, monotonic seconds
_STOP: Final = struct.Struct("@B7x")  # stop request
_VERSION: Final = struct.Struct("@I4x")
_CHILD: Final = struct.Struct("@IIIQ")  # claims published, taken so far, pid, process start
_CLAIM: Final = struct.Struct("@40s40sd100s4x")  # workflow_id, token, deadline, step
_LOST: Final = struct.Struct("@40s")
_HEADER_SIZE: Final = _BEAT.size + _STOP.size
_COPY_SIZE: Final = _CHILD.size + CLAIMS * _CLAIM.size
_AREA_SIZE: Final = _VERSION.size + 2 * _COPY_SIZE + CLAIMS * _LOST.size
_READS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A claim as its child published it; `deadline` in monotonic seconds, alike everywhere."""

    workflow_id: str
    token: str
    deadline: float
    step: str | None


@dataclass(frozen=True, slots=True)
class PublishedChild:
    """What a child published, read in one piece."""

    index: int
    process: Process
    claims: tuple[PublishedClaim, ...]
    #: How many claims this process has taken in its life.
    taken: int = 0


class ClaimSlots:
    """The mapping; create it before forking, so that children inherit it."""

    def __init__(self, children: int) -> None:
        self.children = children
        self._memory = mmap.mmap(-1, _HEADER_SIZE + children * _AREA_SIZE)

    def write_beat(self, beat: float) -> None:
        """Say that the keeper is alive (the keeper's thread writes this)."""
        _BEAT.pack_into(self._memory, 0, beat)

    def beat(self) -> float:
        """Return when the keeper was last alive, in monotonic seconds; 0 before its first beat."""
        return float(_BEAT.unpack_from(self._memory, 0)[0])

    def request_stop(self) -> None:
        """Ask every child to stop, for good. On repeat: nothing."""
        _STOP.pack_into(self._memory, _BEAT.size, 1)

    def stop_requested(self) -> bool:
        """Tell whether the worker was asked to stop."""
        return bool(_STOP.unpack_from(self._memory, _BEAT.size)[0])

    def publish(
        self, index: int, process: Process, claims: list[PublishedClaim], *, taken: int = 0
    ) -> None:
        """Write a child's area (the child writes this, one thread at a time)."""
        assert len(claims) <= CLAIMS
        area = self._area(index)
        version = _VERSION.unpack_from(self._memory, area)[0] + 1
        copy = _copy(area, version)
        _CHILD.pack_into(self._memory, copy, len(claims), taken, process.pid, process.started)
        for number, claim in enumerate(claims):
            _CLAIM.pack_into(
                self._memory, copy + _CHILD.size + number * _CLAIM.size, claim.workflow_id.encode(),
                claim.token.encode(), claim.deadline, (claim.step or "").encode(),
            )  # fmt: skip
        _VERSION.pack_into(self._memory, area, version & 0xFFFFFFFF)

    def read(self, index: int) -> PublishedChild | None:
        """Return what a child published last, or None: nobody has used this area.

        Also None when the child published again during every one of many tries; look again then.
        """
        area = self._area(index)
        for _ in range(_READS_MAX):
            version = _VERSION.unpack_from(self._memory, area)[0]
            copy = _copy(area, version)
            raw = self._memory[copy : copy + _COPY_SIZE]
            if version == _VERSION.unpack_from(self._memory, area)[0]:
                return _child(index, raw)
        return None

    def flag_lost(self, index: int, tokens: list[str]) -> None:
        """Tell a child which of its tokens are lost (the keeper writes this)."""
        for number in range(CLAIMS):
            token = tokens[number].encode() if number < len(tokens) else b""
            _LOST.pack_into(self._memory, self._lost_at(index, number), token)

    def lost(self, index: int) -> set[str]:
        """Return the tokens of a child that the keeper found lost."""
        found = (
            _text(_LOST.unpack_from(self._memory, self._lost_at(index, number))[0])
            for number in range(CLAIMS)
        )
        return {token for token in found if token}

    def _area(self, index: int) -> int:
        assert 0 <= index < self.children
        return _HEADER_SIZE + index * _AREA_SIZE

    def _lost_at(self, index: int, number: int) -> int:
        return self._area(index) + _VERSION.size + 2 * _COPY_SIZE + number * _LOST.size


def _copy(area: int, version: int) -> int:
    """Return where the copy begins that this version counts."""
    return area + _VERSION.size + version % 2 * _COPY_SIZE


def _child(index: int, raw: bytes) -> PublishedChild | None:
    count, taken, pid, started = _CHILD.unpack_from(raw)
    if pid == 0:
        return None
    rows = _CLAIM.iter_unpack(raw[_CHILD.size : _CHILD.size + count * _CLAIM.size])
    claims = tuple(
        PublishedClaim(_text(workflow_id), _text(token), deadline, _text(step) or None)
        for workflow_id, token, deadline, step in rows
    )
    return PublishedChild(index, Process(pid, started), claims, taken)


def _text(raw: bytes) -> str:
    # A token read while it is being flagged may be cut short; then it names no claim.
    return raw.rstrip(b"\0").decode(errors="replace")
