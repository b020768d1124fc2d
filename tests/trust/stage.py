"""One test's deployment: workers as processes, a publisher, and the ledger of what was done."""

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.celery import WakeupCelery
from kernel import Kernel, KernelConfig, Plan, StartResult, WorkflowInstance
from tests.kit.ledger import read as read_ledger
from tests.kit.processes import Child, python
from tests.kit.waiting import eventually
from tests.trust.business import ledger, plans
from tests.trust.business.workflows import GATE

LEASE_SECONDS = 3
GRACE_SECONDS = 1


@dataclass(slots=True)
class Stage:
    """Starts workers, registers work, reads what became of it; `close` ends everything."""

    env: dict[str, str]
    folder: Path
    kernel: Kernel
    bell: "Bell"
    started: list[Child] = field(default_factory=list)

    @classmethod
    def build(cls, env: dict[str, str], folder: Path) -> "Stage":
        """Prepare a deployment on the servers that `env` names."""
        everything = {
            **env,
            "DJANGO_SETTINGS_MODULE": "tests.trust.settings",
            "BATON_DATABASE_URL": f"sqlite:///{folder}/business.sqlite3",
            "BATON_DATA_DIR": str(folder / "data"),
            "BATON_LEASE_SECONDS": str(LEASE_SECONDS),
            "BATON_HANG_GRACE_SECONDS": str(GRACE_SECONDS),
            ledger.LEDGER: str(folder / "ledger"),
            GATE: str(folder / "gate"),
        }
        bell = Bell(env["BATON_BROKER_URL"], env["BATON_KEY_PREFIX"])
        kernel = Kernel.connect(
            KernelConfig(
                mongo_url=env["BATON_MONGO_URL"],
                redis_url=env["BATON_REDIS_URL"],
                database=env["BATON_DATABASE"],
                key_prefix=env["BATON_KEY_PREFIX"],
                lease=LEASE_SECONDS,
                ring=bell.ring,
            )
        )
        kernel.ensure_schema()
        for plan in vars(plans).values():
            if isinstance(plan, Plan):
                kernel.register_plan(plan)
        return cls(everything, folder, kernel, bell)

    def worker(
        self, *queues: str, name: str = "one", concurrency: int = 1, more: Sequence[str] = (),
        **env: str,
    ) -> Child:  # fmt: skip
        """Start a worker and wait until it consumes."""
        child = self.begin_worker(*queues, name=name, concurrency=concurrency, more=more, **env)
        child.wait_for_line(f"{name}@test ready", timeout=90)
        return child

    def begin_worker(
        self, *queues: str, name: str = "one", concurrency: int = 1, more: Sequence[str] = (),
        **env: str,
    ) -> Child:  # fmt: skip
        """Start a worker; it consumes a little later."""
        child = python(
            "-m", "celery", "-A", "config", "worker", "-Q", ",".join(queues or (plans.QUEUE,)),
            "-n", f"{name}@test", "-c", str(concurrency), "--without-gossip", "--without-mingle",
            *more, env={**self.env, **env},
        )  # fmt: skip
        self.started.append(child)
        return child

    def control(self, name: str = "control") -> Child:
        """Start the worker of tick and reconcile, with beat inside."""
        schedule = str(self.folder / f"{name}-schedule")
        return self.worker("control", name=name, more=("-B", "-s", schedule))

    def start(self, plan: Plan, key: str, value: object = None) -> str:
        """Register a round and return its workflow_id."""
        result: StartResult = self.kernel.start_or_resume(plan, biz_key=key, input=value)
        assert result.accepted, result.reason
        return result.workflow_id

    @contextlib.contextmanager
    def without_bell(self) -> Iterator[None]:
        """Lose every wakeup that this publisher would send."""
        self.bell.is_lost = True
        yield
        self.bell.is_lost = False

    def open_gate(self) -> None:
        """Let every gated step, now and later, come home."""
        (self.folder / "gate").touch()

    def lines(
        self, workflow_id: str | None = None, what: str | None = None, step: str | None = None
    ) -> list[dict[str, Any]]:
        """Return what activities wrote down, oldest first."""
        return [
            line
            for line in read_ledger(self.folder / "ledger")
            if workflow_id in (None, line["workflow_id"])
            and what in (None, line["what"])
            and step in (None, line["step"])
        ]

    def entered(self, workflow_id: str, *, times: int = 1, within: float = 20) -> dict[str, Any]:
        """Wait until a workflow's code has been entered so often; return that line."""
        lines = eventually(
            lambda: self.lines(workflow_id, "enter")[times - 1 :],
            within,
            f"{workflow_id} was not entered {times} times",
        )
        return lines[0]

    def ended(
        self, workflow_id: str, within: float = 30, *, interval: float = 0.02
    ) -> WorkflowInstance:
        """Wait until a workflow has ended, looking every `interval` seconds."""

        def terminal() -> WorkflowInstance | None:
            instance = self.kernel.get(workflow_id)
            return instance if instance.status.is_terminal else None

        found = eventually(terminal, within, f"{workflow_id} never ended", interval=interval)
        assert found is not None
        return found

    def close(self) -> None:
        """End every process of this test."""
        for child in self.started:
            with contextlib.suppress(ProcessLookupError):
                child.send_group(signal.SIGCONT)
            child.__exit__()
        self.kernel.close()


class Bell:
    """Sends wakeups as the product's publishers do, to a broker of the test's own."""

    def __init__(self, url: str, key_prefix: str) -> None:
        self.is_lost = False
        self.rung = 0
        self._app = WakeupCelery("trust-tests", set_as_current=False)
        self._app.config_from_object("config.settings.transport")
        options = {
            **self._app.conf.broker_transport_options,
            "global_keyprefix": f"{key_prefix}:celery:",
        }
        self._app.conf.update(broker_url=url, broker_transport_options=options)

    def ring(self, queue: str) -> None:
        if self.is_lost:
            return
        self.rung += 1
        self._app.send_task(
            "baton.wake", args=[queue], queue=queue, ignore_result=True, retry=False
        )


def moved_at_most_once(stage: Stage) -> None:
    """Check that no step was begun twice: every entry was the first attempt of its step."""
    again = [line for line in stage.lines(what="enter") if line["attempt"] > 1]
    assert not again, again
