"""Runs the matrix: servers, a zygote, and the walk over k.

Guarantees that each death is rescued and judged before the next one, and that a walk meets every
boundary of a scenario until an actor ends by itself. Leaves to `share` which boundaries a part has,
to the callers the tests and the printing.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

from pymongo import MongoClient

from config.embedded import RedisServer
from config.embedded.process import die_with_parent
from tests.crash import share
from tests.crash.kills import How, Kill, When
from tests.crash.world import World
from tests.jobs.site import ARTICLE_HTML, running_site
from tests.kit.postgres import own_database
from tests.kit.processes import ROOT

#: More boundaries than any scenario has: a walk that does not end is a fault of its own.
_BOUNDARIES_MAX = 400


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one walk found."""

    boundaries: int = 0
    kills: int = 0
    violations: list[str] = field(default_factory=list)


class Lab:
    """One zygote on databases of its own."""

    def __init__(self, world: World, zygote: "Zygote") -> None:
        self._world = world
        self._zygote = zygote
        self._runs = 0

    def walk(self, scenario: str, when: When, how: How | None = None) -> Tally:
        """Kill a scenario at every command, until it ends by itself.

        Without `how` the two ways take turns, so that each boundary meets one of them on each side.
        """
        tally = Tally()
        for at in range(1, _BOUNDARIES_MAX):
            kill = Kill(at=at, when=when, how=how or _alternating(at, when))
            died, found = self.run(scenario, kill)
            tally.violations += found
            if not died:
                return tally
            tally.kills += 1
            tally.boundaries += 1
        tally.violations.append(f"{scenario} never ended within {_BOUNDARIES_MAX} commands")
        return tally

    def walk_a_part(self, scenario: str, most: int, seed: int) -> Tally:
        """Kill a scenario at so many of its commands; first let it end by itself, to count them."""
        tally = Tally()
        commands, tally.violations = self._untroubled(scenario)
        for kill in share.kills(commands, most, seed):
            died, found = self.run(scenario, kill)
            tally.violations += found
            # Where threads race, the last command may be one that is not sent every time.
            tally.kills += died
            tally.boundaries += died
        return tally

    def storm(self, scenario: str, kills: Iterable[Kill]) -> list[str]:
        """Act once for each kill, all on one run, and rescue in the end; return what is wrong."""
        self._runs += 1
        world = self._next_world()
        for kill in kills:
            acted = self._zygote.ask("act", scenario, world, kill=kill)
            if acted["ended"] == "error":
                return [f"{scenario}, {kill}: {acted['result']}"]
        rescued = self._zygote.ask("rescue", scenario, world, died=True)
        if rescued["ended"] != "done":
            return [f"{scenario}: rescue failed: {rescued['result']}"]
        self._world = World(**{**asdict(self._world), "offset_ms": rescued["result"]["offset_ms"]})
        return list(rescued["result"]["violations"])

    def run(self, scenario: str, kill: Kill | None) -> tuple[bool, list[str]]:
        """Run once and rescue; return whether the actor was killed, and what is wrong."""
        died, _, found = self._run(scenario, kill)
        return died, found

    def _untroubled(self, scenario: str) -> tuple[int, list[str]]:
        _, commands, found = self._run(scenario, None)
        return commands, found

    def _run(self, scenario: str, kill: Kill | None) -> tuple[bool, int, list[str]]:
        self._runs += 1
        world = self._next_world()
        acted = self._zygote.ask("act", scenario, world, kill=kill)
        died = acted["ended"] == "killed"
        where = (
            f"{scenario}, killed {kill.when} {kill.at} ({acted['result']})" if kill else scenario
        )
        if acted["ended"] == "error":
            return died, 0, [f"{scenario}, {kill}: {acted['result']}"]
        commands = 0 if died else int(acted["result"]["commands"])
        rescued = self._zygote.ask("rescue", scenario, world, died=died)
        if rescued["ended"] != "done":
            return died, commands, [f"{where}: rescue failed: {rescued['result']}"]
        self._world = World(**{**asdict(self._world), "offset_ms": rescued["result"]["offset_ms"]})
        found = [f"{where}: {sentence}" for sentence in rescued["result"]["violations"]]
        return died, commands, found

    def set_up(self) -> None:
        """Create both schemas."""
        reply = self._zygote.ask("set_up", "linear", self._next_world())
        assert reply["ended"] == "done", reply["result"]

    def _next_world(self) -> World:
        return World(**{**asdict(self._world), "run": f"r{self._runs}"})


def _alternating(turn: int, when: When) -> How:
    return How.EXIT if (turn % 2 == 1) == (when is When.BEFORE) else How.SIGKILL


class Zygote:
    """The forking process, from outside."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.zygote"],
                cwd=ROOT,
                env={**os.environ, **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                preexec_fn=die_with_parent(SIGKILL),
            )
        self._log = log
        self._reply()

    def ask(
        self,
        phase: str,
        scenario: str,
        world: World,
        *,
        kill: Kill | None = None,
        died: bool = False,
    ) -> dict[str, Any]:
        """Let a child do a job; return how it ended."""
        assert self._process.stdin is not None
        job = {
            "phase": phase,
            "scenario": scenario,
            "world": asdict(world),
            "kill": asdict(kill) if kill else None,
            "died": died,
        }
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def close(self) -> None:
        """End the process. On repeat: nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the zygote ended: {self._log.read_text(errors='replace')[-4000:]}"
        reply: dict[str, Any] = json.loads(line)
        return reply


class _FailsOnce(dict[str, tuple[int, str]]):
    """Pages below /once/ are missing the first time somebody asks for them."""

    def get(self, path: str, default: Any = None) -> Any:
        if path.startswith("/once/") and path not in self:
            self[path] = (200, ARTICLE_HTML)
            return default
        return super().get(path, default)


@contextmanager
def open_lab(folder: Path, mongo_url: str) -> Iterator[Lab]:
    """Give a lab on an existing mongod; its Redis, pages and zygote end with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    database = f"crash_{uuid.uuid4().hex[:12]}"
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(folder / "redis"))
        site = stack.enter_context(running_site())
        site.pages = _FailsOnce(site.pages)
        client = stack.enter_context(MongoClient[dict[str, Any]](mongo_url))
        stack.callback(client.drop_database, database)
        database_url = f"sqlite:///{folder}/business.sqlite3"
        if (shared := os.environ.get("BATON_DATABASE_URL", "")).startswith("postgres"):
            database_url = stack.enter_context(own_database(shared))
        env = {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "BATON_MONGO_URL": mongo_url,
            "BATON_REDIS_URL": redis.url,
            "BATON_BROKER_URL": redis.url,
            "BATON_DATA_DIR": str(folder / "data"),
            "BATON_DATABASE_URL": database_url,
        }
        zygote = Zygote(env, folder / "zygote.log")
        stack.callback(zygote.close)
        world = World(
            mongo_url=mongo_url,
            redis_url=redis.url,
            database=database,
            site_url=site.url,
            folder=str(folder),
            run="set-up",
            offset_ms=0,
        )
        lab = Lab(world, zygote)
        lab.set_up()
        yield lab
