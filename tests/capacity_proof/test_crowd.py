"""N workflows behind a limit of eight: never more than eight call, and the line is kept."""

import sys

import pytest

from tests.capacity_proof.crowd import run_crowd
from tests.capacity_proof.deployment import Deployment
from tests.capacity_proof.sizes import CALL_MS, CLAIMS, LIMIT, ORDER_KEPT, WORKFLOWS

pytestmark = pytest.mark.timeout(900)


def test_a_crowd_never_exceeds_its_limit(shared: Deployment) -> None:
    assert LIMIT < CLAIMS < WORKFLOWS, "otherwise nothing holds anybody back"
    report = run_crowd(
        shared,
        workflows=WORKFLOWS,
        call_ms=CALL_MS,
        limit=LIMIT,
        within=60 + 4 * WORKFLOWS * CALL_MS / 1000 / LIMIT,
    )
    sys.stdout.write(f"{report.line()}, farthest from its turn {report.displacement}\n")
    assert report.violations == report.repeated == report.lost == 0, report
    assert 1 < report.most <= LIMIT, report
    assert report.refused_per_granted <= 1.5, report
    assert report.displacement <= ORDER_KEPT, report
