"""Random requests, runs and deaths on one tenant's jobs; the books must balance all the time.

Guarantees that a seed is printed with every act, so that a failure can be looked into. Leaves the
deaths to the lab, which kills each act at a random command.
"""

import random
from collections.abc import Iterator

from jobs.dispatch.recovery import dispatch_due
from jobs.models import QuotaEntry
from jobs.services import content, deleting, quota
from jobs.services.errors import ServiceError
from tests.crash.scenarios.outbox import Outbox, jobs_of
from tests.crash.stage import Stage

#: What one act does at most, when nothing ends it.
_OPERATIONS = 14
#: Rounds the tenant may have; low enough to be met.
_LIMIT = 12


class QuotaStorm(Outbox):
    """Create, run, fail, retry, cancel, regenerate and delete, in any order."""

    def arrange(self, stage: Stage) -> None:
        assert stage.kernel
        quota.set_limit(stage.world.run, _LIMIT)

    def act(self, stage: Stage) -> None:
        # Each act of a run finds another number of entries, and so draws other lots.
        seen = QuotaEntry.objects.filter(tenant=stage.world.run).count()
        lots = random.Random(f"{stage.world.run} {seen} {len(jobs_of(stage.world))}")
        for _ in range(_OPERATIONS):
            self._do_something(stage, lots)

    def _do_something(self, stage: Stage, lots: random.Random) -> None:
        jobs = jobs_of(stage.world)
        verb = lots.choices(
            ["submit", "run", "retry", "cancel", "regenerate", "delete", "dispatch"],
            [4, 3, 2, 2, 2, 1, 1],
        )[0]
        try:
            match verb:
                case "submit":
                    self.submit(stage, lots.choice(["/tides", "/missing"]))
                case "run":
                    stage.kernel.drain(["content"])
                case "dispatch":
                    stage.advance(40)
                    dispatch_due(kernel=stage.kernel)
                case _ if jobs:
                    job = lots.choice(jobs)
                    _SERVICES[verb](job.tenant, job.pk)
                case _:
                    pass
        except ServiceError:
            # Not possible for this job now, or over the quota: an answer like any other.
            return

    def check(self, stage: Stage) -> Iterator[str]:
        standing = quota.standing_of(stage.world.run)
        if standing.reserved:
            yield f"all is over and {standing.reserved} rounds are reserved"
        if standing.settled > _LIMIT:
            yield f"{standing.settled} rounds were settled, the limit is {_LIMIT}"
        for job in jobs_of(stage.world):
            if job.status in {"initial", "generating"} or job.dispatch_next_at is not None:
                yield f"{job.pk} ended {job.status}, {job.dispatch_status}"


_SERVICES = {
    "retry": content.retry_job,
    "cancel": content.cancel_job,
    "regenerate": content.regenerate_job,
    "delete": deleting.delete_job,
}
