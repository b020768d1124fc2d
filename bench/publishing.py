"""Instances a second that one writer registers by the page, beside one by one and bare inserts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from bench.figure import Figure, median, spread
from bench.site import QUEUE, Site, connect, fresh_database, mongo
from bench.statements import bare_document
from bench.workflows import THREE
from kernel import Kernel, StartItem

_PAGE: Final = 500


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Register pages of fresh instances, and the same pages again."""
    pages, repeats = (4, 3) if quick else (20, 5)
    fresh, again, single, bare = [], [], [], []
    for _ in range(repeats):
        with fresh_database(site) as environment:
            kernel = connect(environment)
            kernel.ensure_schema()
            kernel.register_plan(THREE)
            kernel.hints.hints.set_marker()
            fresh.append(_pages(kernel, pages, expected="created"))
            again.append(_pages(kernel, pages, expected="registered"))
            single.append(_one_by_one(kernel, 200))
            _verify(environment, pages * _PAGE + 200)
            kernel.close()
            bare.append(_inserts(environment, pages))
    raw_name = f"insert_many of {_PAGE}, majority + journal"
    return [
        Figure(
            name="instances registered by one page writer",
            value=median(fresh),
            unit="/s",
            aim=">= 2,000/s",
            note=f"pages of {_PAGE}, lanes and bell included; one by one"
            f" {median(single):,.0f}/s; {spread(fresh)}",
            raw_name=raw_name,
            raw=median(bare),
        ),
        Figure(
            name="the same pages again, all registered before",
            value=median(again),
            unit="/s",
            note=spread(again),
            raw_name=raw_name,
            raw=median(bare),
        ),
    ]


def _pages(kernel: Kernel, pages: int, *, expected: str) -> float:
    begun = time.perf_counter()
    for page in range(pages):
        items = [StartItem(f"page:{page}:{number}", {"number": number}) for number in range(_PAGE)]
        answers = kernel.start_many(THREE, items)
        if {answer.reason for answer in answers} != {expected}:
            raise RuntimeError(f"a page was answered otherwise than {expected}")
    return pages * _PAGE / (time.perf_counter() - begun)


def _one_by_one(kernel: Kernel, count: int) -> float:
    begun = time.perf_counter()
    for number in range(count):
        kernel.start_or_resume(THREE, biz_key=f"single:{number}", input={"number": number})
    return count / (time.perf_counter() - begun)


def _verify(environment: Mapping[str, str], expected: int) -> None:
    kernel = connect(environment)
    depth = sum(lane.total for lane in kernel.hints.hints.depth(QUEUE).values())
    kernel.close()
    with mongo(environment) as client:
        stored = client[environment["BATON_DATABASE"]]["workflow_instances"].count_documents({})
    if (stored, depth) != (expected, expected):
        raise RuntimeError(f"{stored} of {expected} are stored, {depth} stand in a lane")


def _inserts(environment: Mapping[str, str], pages: int) -> float:
    with mongo(environment) as client:
        bare = client[environment["BATON_DATABASE"]]["bare"]
        bare.create_index("workflow_id", unique=True)
        begun = time.perf_counter()
        for page in range(pages):
            documents = [bare_document(f"{page}:{number}") for number in range(_PAGE)]
            bare.insert_many(documents, ordered=False)
        return pages * _PAGE / (time.perf_counter() - begun)
