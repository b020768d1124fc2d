"""Keys: one hash tag a queue, and prefixes that keep deployments apart."""

from __future__ import annotations

import re

import pytest

from kernel.errors import UsageError
from kernel.hints.keys import Keys


def test_all_keys_of_a_queue_share_its_hash_tag() -> None:
    keys = Keys("baton").of("content")
    every = [*keys.lanes, keys.rotation, keys.timers, keys.leases, keys.bell, keys.tickbell]
    assert every == [
        "baton:{content}:ready:0",
        "baton:{content}:ready:1",
        "baton:{content}:ready:2",
        "baton:{content}:ready:3",
        "baton:{content}:rotation",
        "baton:{content}:timers",
        "baton:{content}:leases",
        "baton:{content}:bell",
        "baton:{content}:tickbell",
    ]
    assert {re.findall(r"\{(.*?)\}", key)[0] for key in every} == {"content"}


def test_the_marker_belongs_to_the_deployment() -> None:
    assert Keys("one").marker != Keys("two").marker


@pytest.mark.parametrize("name", ["", "{", "a}b", "{a}"])
def test_names_that_would_break_the_hash_tag_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="key_prefix"):
        Keys(name)
    with pytest.raises(UsageError, match="queue"):
        Keys("baton").of(name)
