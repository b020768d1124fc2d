"""The facts one run of a scenario shares between its processes; travels as JSON.

Guarantees that runs do not meet: each has its own names in the lab's databases. Leaves to the lab
the servers, to `stage` what is made from these facts.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.crash.ledger import Ledger

#: Seconds: longer than any run, so that no renewal disturbs the counting of commands.
LEASE_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Addresses and names of one run.

    `offset_ms` is what all clocks of the run are ahead; it only grows from run to run, so that the
    lab's one database never sees time go back.
    """

    mongo_url: str
    redis_url: str
    database: str
    site_url: str
    folder: str
    run: str
    offset_ms: int

    @property
    def key_prefix(self) -> str:
        """Redis keys of this run begin so."""
        return f"crash-{self.run}"

    @property
    def ledger(self) -> Ledger:
        """The run's ledger."""
        return Ledger(Path(self.folder) / f"{self.run}.ledger")

    def biz_key(self, name: str = "one") -> str:
        """Return the biz_key of an instance of this run."""
        return f"{self.run}:{name}"
