"""Shared memory between a worker's main process and its children: one writer an area, no lock.

A child's area holds its process and up to `CLAIMS` published claims under a sequence number that is
odd while it is being written. The keeper's areas hold its beat, the stop request and, beside each
claim, the token it found lost.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import Final

from kernel.keeper.processes import Process

#: Claims one child can publish at once.
CLAIMS: Final = 32

_HEADER: Final = struct.Struct("<dB7x")  # keeper's beat (monotonic seconds), stop request
_CHILD: Final = struct.Struct("<IIQ")  # sequence, pid, process start
_CLAIM: Final = struct.Struct("<B3x40s40sd100s4x")  # used, workflow_id, token, deadline, step
_LOST: Final = struct.Struct("<40s")
_CHILD_SIZE: Final = _CHILD.size + CLAIMS * (_CLAIM.size + _LOST.size)
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
    """A child's area as read in one piece."""

    index: int
    process: Process
    claims: tuple[PublishedClaim, ...]


class ClaimSlots:
    """The mapping; create it before forking, so that children inherit it."""

    def __init__(self, children: int) -> None:
        self.children = children
        self._memory = mmap.mmap(-1, _HEADER.size + children * _CHILD_SIZE)

    def write_keeper(self, *, beat: float, stop: bool) -> None:
        """Publish the keeper's beat and whether children should stop (the keeper writes this)."""
        _HEADER.pack_into(self._memory, 0, beat, stop)

    def beat(self) -> float:
        """Return when the keeper was last alive, in monotonic seconds; 0 before its first beat."""
        return float(_HEADER.unpack_from(self._memory, 0)[0])

    def stop_requested(self) -> bool:
        """Tell whether the worker was asked to stop."""
        return bool(_HEADER.unpack_from(self._memory, 0)[1])

    def publish(self, index: int, process: Process, claims: list[PublishedClaim]) -> None:
        """Write a child's area (the child writes this, one thread at a time)."""
        assert len(claims) <= CLAIMS
        base = self._base(index)
        sequence = _CHILD.unpack_from(self._memory, base)[0] | 1
        _CHILD.pack_into(self._memory, base, sequence, process.pid, process.started)
        for number in range(CLAIMS):
            at = base + _CHILD.size + number * _CLAIM.size
            if number < len(claims):
                claim = claims[number]
                _CLAIM.pack_into(
                    self._memory, at, 1, claim.workflow_id.encode(), claim.token.encode(),
                    claim.deadline, (claim.step or "").encode(),
                )  # fmt: skip
            else:
                self._memory[at] = 0
        after = (sequence + 1) & 0xFFFFFFFF
        _CHILD.pack_into(self._memory, base, after, process.pid, process.started)

    def read(self, index: int) -> PublishedChild | None:
        """Return a child's area, or None: never used, or its writer died while writing it."""
        base = self._base(index)
        for _ in range(_READS_MAX):
            before, pid, started = _CHILD.unpack_from(self._memory, base)
            if pid == 0:
                return None
            raw = self._memory[base + _CHILD.size : base + _CHILD.size + CLAIMS * _CLAIM.size]
            after = _CHILD.unpack_from(self._memory, base)[0]
            if before == after and before % 2 == 0:
                claims = tuple(
                    claim for fields in _CLAIM.iter_unpack(raw) if (claim := _claim(fields))
                )
                return PublishedChild(index, Process(pid, started), claims)
        return None

    def flag_lost(self, index: int, tokens: list[str]) -> None:
        """Tell a child which of its tokens are lost (the keeper writes this)."""
        for number in range(CLAIMS):
            token = tokens[number].encode() if number < len(tokens) else b""
            _LOST.pack_into(self._memory, self._lost_at(index, number), token)

    def lost(self, index: int) -> set[str]:
        """Return the tokens of a child that the keeper found lost."""
        found = (
            _LOST.unpack_from(self._memory, self._lost_at(index, number))[0].rstrip(b"\0")
            for number in range(CLAIMS)
        )
        return {token.decode() for token in found if token}

    def _base(self, index: int) -> int:
        assert 0 <= index < self.children
        return _HEADER.size + index * _CHILD_SIZE

    def _lost_at(self, index: int, number: int) -> int:
        return self._base(index) + _CHILD.size + CLAIMS * _CLAIM.size + number * _LOST.size


def _claim(fields: tuple[int, bytes, bytes, float, bytes]) -> PublishedClaim | None:
    used, workflow_id, token, deadline, step = fields
    if not used:
        return None
    name = step.rstrip(b"\0").decode(errors="replace")
    return PublishedClaim(
        workflow_id.rstrip(b"\0").decode(), token.rstrip(b"\0").decode(), deadline, name or None
    )
