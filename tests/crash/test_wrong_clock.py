"""A worker whose clock is ten minutes off neither takes nor loses a lease: only Mongo's counts."""

from dataclasses import replace

import pytest

from tests.crash.worker import HELD, QUEUE, Settings, arguments
from tests.kit.processes import python
from tests.kit.waiting import eventually, never

TEN_MINUTES = 600.0
#: Without Redis the workers ask MongoDB for anything due all the time: the hardest temptation.
NO_HINTS = None
SKEWS = pytest.mark.parametrize("skew", [TEN_MINUTES, -TEN_MINUTES], ids=["fast", "slow"])


@SKEWS
def test_worker_with_a_wrong_clock_steals_no_lease(settings: Settings, skew: float) -> None:
    settings = replace(settings, redis_url=NO_HINTS)
    kernel = settings.connect()
    kernel.ensure_schema()
    workflow_id = kernel.start_or_resume(HELD, biz_key="held").workflow_id
    with python(*arguments(settings)) as holder:
        holder.wait_for_line("ready")
        eventually(lambda: settings.ledger.entered("held") == 1)
        token = kernel.get(workflow_id).claim_token
        with python(*arguments(replace(settings, skew=skew))) as wrong:
            wrong.wait_for_line("ready")
            other = kernel.start_or_resume(HELD, biz_key="served").workflow_id
            # Its own work gets done, so it is looking; what is held by another it leaves alone.
            eventually(lambda: kernel.get(other).steps["before"].status == "completed")
            never(lambda: kernel.get(workflow_id).claim_token != token, during=2 * settings.lease)
            assert settings.ledger.entered("held") == 2
            settings.let_go(1)
            eventually(lambda: kernel.get(workflow_id).status == "completed")
            eventually(lambda: kernel.get(other).status == "completed")
            assert "claim lost" not in holder.output + wrong.output
    assert settings.ledger.entered("held") == 2
    kernel.close()


@SKEWS
def test_worker_with_a_wrong_clock_keeps_its_own_lease(settings: Settings, skew: float) -> None:
    settings = replace(settings, redis_url=NO_HINTS)
    kernel = settings.connect()
    kernel.ensure_schema()
    workflow_id = kernel.start_or_resume(HELD, biz_key="held").workflow_id
    with python(*arguments(replace(settings, skew=skew))) as wrong:
        wrong.wait_for_line("ready")
        eventually(lambda: settings.ledger.entered("held") == 1)
        first = kernel.get(workflow_id)

        def taken_over() -> int:
            kernel.tick()
            return kernel.drain([QUEUE])

        never(taken_over, during=2 * settings.lease)
        renewed = kernel.get(workflow_id)
        assert renewed.claim_token == first.claim_token
        assert renewed.claimable_time > first.claimable_time
        settings.let_go(1)
        eventually(lambda: kernel.get(workflow_id).status == "completed")
    assert settings.ledger.entered("held") == 1
    kernel.close()
