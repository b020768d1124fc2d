"""Commits of several claims in one command; each learns its own answer (design 1.8).

An unordered bulk says how many of its statements matched, not which. If all did, that is every
answer. Otherwise the instances are read again, and each commit is judged by its own effect: the
token and the `seq` of the steps it moves. So a claim that is lost costs the others of its group one
read. A statement the server refuses, and one that cannot be judged, is told as unavailable: its
caller settles it alone, as after any lost answer (`kernel.engine.committing`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pymongo import UpdateOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, PyMongoError

from kernel.errors import StoreUnavailable, Unreadable
from kernel.protocol.commit import Commit
from kernel.protocol.judging import Verdict, judge
from kernel.store.clock import StoreClock
from kernel.store.codec import from_stored
from kernel.store.compiling import compile_guard, compile_stages
from kernel.store.connection import Document, is_too_large, translated
from kernel.store.legible import instance_of


def commit_group(
    instances: Collection[Document], clock: StoreClock, commits: Sequence[Commit]
) -> list[bool | Exception]:
    """Apply commits of different instances, each of which moves a step; answer in their order.

    Raises:
        StoreUnavailable: the outcome of all of them is unknown.
    """
    updates = [
        UpdateOne(compile_guard(commit.guard), compile_stages(commit, clock)) for commit in commits
    ]
    refused: set[int] = set()
    with translated():
        try:
            matched = instances.bulk_write(updates, ordered=False).matched_count
        except BulkWriteError as exc:
            if exc.details.get("writeConcernErrors"):
                raise StoreUnavailable("the majority has not confirmed a group") from exc
            matched = int(exc.details["nMatched"])
            refused = {int(error["index"]) for error in exc.details["writeErrors"]}
        except PyMongoError as exc:
            if is_too_large(exc):
                raise StoreUnavailable("a statement of a group is too large") from exc
            raise
    answers: list[bool | Exception] = [True] * len(commits)
    if matched != len(commits) - len(refused):
        answers = _judged(instances, commits)
    for index in refused:
        answers[index] = StoreUnavailable("the server refused this statement of a group")
    return answers


def _judged(instances: Collection[Document], commits: Sequence[Commit]) -> list[bool | Exception]:
    wanted = {"workflow_id": {"$in": [commit.guard.workflow_id for commit in commits]}}
    with translated():
        rows = {row["workflow_id"]: row for row in instances.find(wanted)}
    return [_answer(rows.get(commit.guard.workflow_id), commit) for commit in commits]


def _answer(row: Document | None, commit: Commit) -> bool | Exception:
    if row is None:
        return False
    try:
        instance = instance_of(from_stored(row))
    except Unreadable as exc:
        return StoreUnavailable(f"a commit of a group cannot be judged: {exc}")
    match judge(instance, commit):
        case Verdict.APPLIED:
            return True
        case Verdict.LOST:
            return False
        case Verdict.SEND_AGAIN:
            return StoreUnavailable("a commit of a group found nothing, though it should have")
