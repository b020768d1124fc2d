"""Wires the kernel's parts together; no other place does (design 9)."""

from __future__ import annotations

from kernel.runtime.kernel import Kernel

__all__ = ["Kernel"]
