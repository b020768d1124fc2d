"""Shared memory between a worker's main process and its children: one writer an area, no lock.

A child's area has a head, which says who it is and how many of its cells it has ever used, and a
cell for each claim it can hold. Each of them is kept in two copies with a version whose parity says
which one counts. The child writes the other copy and then turns the version, so whatever stops it
half-way (a death, or a sibling thread that keeps the GIL) leaves the last whole copy in force. The
keeper's areas hold its beat, the stop request and, beside each child, the tokens it found lost. A
byte for each area says whether it was ever used.

Guarantees that a change of one claim costs the same however many others there are, and that a look
costs what was ever used, not what could be. Leaves to others: what is published when
(`kernel.keeper.child`) and what follows (`kernel.keeper.keeper`).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kernel import limits
from kernel.keeper.processes import Process

#: Claims one child can publish at once.
CLAIMS: Final = limits.SLOTS_PER_CHILD

# Native formats: only they store a number in one piece, so that it is never seen half written.
_BEAT: Final = struct.Struct("@d")  # the keeper's beat, monotonic seconds
_STOP: Final = struct.Struct("@B7x")  # stop request
_VERSION: Final = struct.Struct("@I4x")
_HEAD: Final = struct.Struct("@IIQI4x")  # claims taken so far, pid, process start, cells used
_CLAIM: Final = struct.Struct("@40s40sd100s4x")  # workflow_id, token, deadline, step
_LOST: Final = struct.Struct("@40s")
_SEATS: Final = _BEAT.size + _STOP.size
_HEAD_SIZE: Final = _VERSION.size + 2 * _HEAD.size
_CELL_SIZE: Final = _VERSION.size + 2 * _CLAIM.size
_AREA_SIZE: Final = _HEAD_SIZE + CLAIMS * (_CELL_SIZE + _LOST.size)
_NO_CLAIM: Final = (b"", b"", 0.0, b"")
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
        self._areas = _SEATS + _aligned(children)
        self._memory = mmap.mmap(-1, self._areas + children * _AREA_SIZE)

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
        self, index: int, process: Process, claims: Sequence[PublishedClaim], *, taken: int = 0
    ) -> None:
        """Write a child's whole area: who it is and what it holds (the child writes this)."""
        assert len(claims) <= CLAIMS
        for cell in range(CLAIMS):
            self.publish_claim(index, cell, claims[cell] if cell < len(claims) else None)
        self.publish_head(index, process, taken=taken, cells=len(claims))

    def publish_head(self, index: int, process: Process, *, taken: int, cells: int) -> None:
        """Say who uses an area, how many claims it has taken in its life, and in how many cells.

        Those from `cells` on hold nothing and are not looked at: a claim is published after the
        head that counts its cell.
        """
        self._write(self._area(index), _HEAD, (taken, process.pid, process.started, cells))
        self._memory[_SEATS + index] = 1

    def seated(self) -> list[int]:
        """Return the areas that were ever used, of however many there are."""
        seats = self._memory[_SEATS : _SEATS + self.children]
        return [index for index, seat in enumerate(seats) if seat]

    def publish_claim(self, index: int, cell: int, claim: PublishedClaim | None) -> None:
        """Write one claim of a child, or that the cell holds none; one thread at a time."""
        self._write(self._cell(index, cell), _CLAIM, _NO_CLAIM if claim is None else _row(claim))

    def read(self, index: int) -> PublishedChild | None:
        """Return what a child published last, or None: nobody has used this area.

        Also None when the child published again during every one of many tries, or another took its
        place meanwhile; look again then.
        """
        head = self._read(self._area(index), _HEAD)
        if head is None or head[1] == 0:
            return None
        rows = [self._read(self._cell(index, cell), _CLAIM) for cell in range(head[3])]
        after = self._read(self._area(index), _HEAD)
        if None in rows or after is None or after[1:3] != head[1:3]:
            return None
        claims = tuple(
            PublishedClaim(_text(row[0]), _text(row[1]), row[2], _text(row[3]) or None)
            for row in rows
            if row is not None and _text(row[1])
        )
        return PublishedChild(index, Process(head[1], head[2]), claims, head[0])

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

    def _write(self, at: int, layout: struct.Struct, values: tuple[Any, ...]) -> None:
        version = _VERSION.unpack_from(self._memory, at)[0] + 1 & 0xFFFFFFFF
        layout.pack_into(self._memory, _copy(at, layout, version), *values)
        _VERSION.pack_into(self._memory, at, version)

    def _read(self, at: int, layout: struct.Struct) -> tuple[Any, ...] | None:
        for _ in range(_READS_MAX):
            version = _VERSION.unpack_from(self._memory, at)[0]
            copy = _copy(at, layout, version)
            raw = self._memory[copy : copy + layout.size]
            if version == _VERSION.unpack_from(self._memory, at)[0]:
                return layout.unpack(raw)
        return None

    def _area(self, index: int) -> int:
        assert 0 <= index < self.children
        return self._areas + index * _AREA_SIZE

    def _cell(self, index: int, cell: int) -> int:
        assert 0 <= cell < CLAIMS
        return self._area(index) + _HEAD_SIZE + cell * _CELL_SIZE

    def _lost_at(self, index: int, number: int) -> int:
        return self._area(index) + _HEAD_SIZE + CLAIMS * _CELL_SIZE + number * _LOST.size


def _aligned(size: int) -> int:
    """Round up to where a number may begin."""
    return -(-size // _BEAT.size) * _BEAT.size


def _copy(at: int, layout: struct.Struct, version: int) -> int:
    """Return where the copy begins that this version counts."""
    return at + _VERSION.size + version % 2 * layout.size


def _row(claim: PublishedClaim) -> tuple[bytes, bytes, float, bytes]:
    return (
        claim.workflow_id.encode(),
        claim.token.encode(),
        claim.deadline,
        (claim.step or "").encode(),
    )


def _text(raw: bytes) -> str:
    # A token read while it is being flagged may be cut short; then it names no claim.
    return raw.rstrip(b"\0").decode(errors="replace")
