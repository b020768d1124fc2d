"""Put servers and processes together into one running product.

Guarantees that `prepare` leaves a migrated database, the kernel's schema and a user with a token,
repeatably, and that `close` ends the servers it started, and only those.
Leaves watching processes to `supervisor`, talking to people to the commands `up` and `demo`.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from config.embedded import MongoServer, RedisServer, ports, require_replica_set
from config.settings.env import STACK_FILE
from config.stack import services
from config.stack.services import StackOptions
from config.stack.supervisor import Supervisor
from config.stack.terminal import Terminal

_ROOT = Path(__file__).resolve().parents[2]
_PREPARE_TIMEOUT = 120.0
_FLOWER_USER = "baton"
_NOT_AS_ROOT = "ignore:You're running the worker with superuser privileges"


class StackFailed(Exception):
    """The stack could not be brought up; the message says which part and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Ready credentials of a development stack."""

    username: str
    password: str
    token: str
    tenant: str


class Stack:
    """The servers and processes of one data folder."""

    def __init__(self, options: StackOptions, *, terminal: Terminal) -> None:
        self.options = options
        self.web_port = services.choose_port(options.web_port, services.WEB_PORT)
        self.flower_port = services.choose_port(options.flower_port, services.FLOWER_PORT)
        self.speech_port = services.choose_port(None, services.SPEECH_PORT)
        self.env: dict[str, str] = {}
        self._terminal = terminal
        self._servers: list[MongoServer | RedisServer] = []
        self._told: Path | None = None

    @property
    def web_url(self) -> str:
        """Where the API and the console answer."""
        return f"http://{ports.HOST}:{self.web_port}"

    @property
    def flower_url(self) -> str:
        """Where Flower answers."""
        return f"http://{ports.HOST}:{self.flower_port}"

    @property
    def speech_url(self) -> str:
        """Where speech is recognised: BATON_SPEECH_SERVICE_URL, else the stack's own service."""
        given = os.environ.get("BATON_SPEECH_SERVICE_URL")
        return given or f"http://{ports.HOST}:{self.speech_port}"

    @property
    def flower_auth(self) -> str:
        """Flower's `user:password`: BATON_FLOWER_AUTH, else made once a data folder."""
        if given := os.environ.get("BATON_FLOWER_AUTH"):
            return given
        file = self.options.data_dir / "flower_auth"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(f"{_FLOWER_USER}:{secrets.token_urlsafe(12)}", encoding="utf-8")
        return file.read_text(encoding="utf-8")

    def prepare(self) -> Access:
        """Start the servers, bring the databases up to date, return ready credentials.

        Raises: EmbeddedServerError, NotAReplicaSet, StackFailed. On repeat: the same credentials.
        """
        self.options.data_dir.mkdir(parents=True, exist_ok=True)
        mongo_url = self._mongo_url()
        redis_url = self._redis_url()
        self.env = {
            "BATON_MONGO_URL": mongo_url,
            "BATON_REDIS_URL": redis_url,
            "BATON_BROKER_URL": os.environ.get("BATON_BROKER_URL") or redis_url,
            "BATON_DATA_DIR": str(self.options.data_dir.resolve()),
            "BATON_SPEECH_SERVICE_URL": self.speech_url,
            "BATON_LOG_FORMAT": os.environ.get("BATON_LOG_FORMAT") or "text",
            # Whoever runs all this as root, in a container perhaps, need not read it six times.
            "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS") or _NOT_AS_ROOT,
            # Else each thread of a worker keeps freed memory of its own (docs/operations.md).
            "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX") or "2",
            **self.options.env,
        }
        # The stack's own Redis is empty at each start, which is no reason to warn of it.
        access = Access(**json.loads(self.manage("prepare", "--hints", "--access")))
        self._say_where(self.options.data_dir / STACK_FILE)
        return access

    def supervisor(self) -> Supervisor:
        """Return a supervisor for the stack's processes; `prepare` comes first."""
        specs = [
            services.web(self.web_port, self.env),
            *(
                services.worker(
                    queue, concurrency=self.options.concurrency, env=self.env, number=number
                )
                for queue in services.WORK_QUEUES
                for number in range(1, len(self.options.worker_names(queue)) + 1)
            ),
            services.worker(services.CONTROL_QUEUE, concurrency=1, env=self.env),
            services.beat(self.options.data_dir.resolve(), self.env),
        ]
        if not os.environ.get("BATON_SPEECH_SERVICE_URL"):
            folder = self.options.data_dir.resolve()
            faults = self.options.speech_faults
            specs.append(services.speech(self.speech_port, folder, faults=faults, env=self.env))
        if self.options.flower:
            after = tuple(spec.name for spec in specs if spec.stop_stage == services.WORKER_STAGE)
            specs.append(services.flower(self.flower_port, self.flower_auth, self.env, after=after))
        return Supervisor(specs, terminal=self._terminal, cwd=_ROOT)

    def manage(self, *arguments: str) -> str:
        """Run `manage.py ARGUMENTS…` in the stack's environment and return what it printed.

        Raises: StackFailed, quoting the command's own words.
        """
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=_ROOT,
            env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PREPARE_TIMEOUT,
            start_new_session=True,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise StackFailed(f"`manage.py {' '.join(arguments)}` failed: {said[-4000:]}")
        return done.stdout

    def close(self) -> None:
        """Stop the servers this stack started, Redis first. On repeat: nothing."""
        if self._told is not None:
            self._told.unlink(missing_ok=True)
        while self._servers:
            server = self._servers.pop()
            self._terminal.event(server.name, "stopping")
            server.stop()

    def _say_where(self, file: Path) -> None:
        """Let commands of another terminal find these servers (`config.settings.env` reads it)."""
        file.touch(mode=0o600)
        urls = {name: url for name, url in self.env.items() if name.endswith("_URL")}
        lines = "".join(f"{name}={url}\n" for name, url in urls.items())
        file.write_text(lines, encoding="utf-8")
        self._told = file

    def _mongo_url(self) -> str:
        if given := os.environ.get("BATON_MONGO_URL"):
            require_replica_set(given)
            return given
        return self._start(MongoServer(self.options.data_dir / "mongo"))

    def _redis_url(self) -> str:
        if given := os.environ.get("BATON_REDIS_URL"):
            return given
        return self._start(RedisServer(self.options.data_dir / "redis"))

    def _start(self, server: MongoServer | RedisServer) -> str:
        begun = time.monotonic()
        server.start()
        self._servers.append(server)
        self._terminal.event(
            server.name, f"answers on port {server.port} after {time.monotonic() - begun:.1f} s"
        )
        return server.url
