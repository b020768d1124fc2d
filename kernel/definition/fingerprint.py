"""The identity of a step protocol: what decides how a stored instance is read (design 1.7).

It covers type, step names, their order and dependencies. It leaves out activities, timeouts,
retries and capacity, which may change freely between deploys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence


def fingerprint(
    plan_type: str, steps: Sequence[str], depends_on: Mapping[str, Sequence[str]]
) -> str:
    """Return 64 hex digits: SHA-256 over length-prefixed type, names and sorted dependencies."""
    digest = hashlib.sha256()

    def add(text: str) -> None:
        data = text.encode()
        digest.update(len(data).to_bytes(4, "big"))
        digest.update(data)

    add(plan_type)
    for name in steps:
        add(name)
        dependencies = sorted(depends_on[name])
        digest.update(len(dependencies).to_bytes(4, "big"))
        for dependency in dependencies:
            add(dependency)
    return digest.hexdigest()
