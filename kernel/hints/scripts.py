"""Run the scripts of lua/ by their file names.

Guarantees: one round trip per call while Redis knows the script; after a restart, failover or
SCRIPT FLUSH the same call sends the source along and succeeds, and only that one command is sent
again. Leaves to others: keys (kernel.hints.keys), errors and timeouts (kernel.hints.redis_hints).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import NoScriptError

#: The repository's scripts, beside the package `kernel`.
LUA_FOLDER = Path(__file__).resolve().parents[2] / "lua"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One operation: the text of a file in lua/ and the name Redis gives it."""

    name: str
    source: str
    sha: str


def load_scripts(folder: Path = LUA_FOLDER) -> dict[str, Script]:
    """Read every script of the folder, keyed by file name without its ending."""
    scripts = {}
    for path in sorted(folder.glob("*.lua")):
        source = path.read_text(encoding="utf-8")
        sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        scripts[path.stem] = Script(name=path.stem, source=source, sha=sha)
    assert scripts, f"no Lua scripts in {folder}: the installation is incomplete"
    return scripts


#: Keys and arguments of one run of a script.
Call = tuple[tuple[str, ...], tuple[str | int, ...]]


class Scripts:
    """The scripts of lua/ on one client."""

    def __init__(self, client: redis.Redis, scripts: dict[str, Script] | None = None) -> None:
        self._client = client
        self._scripts = load_scripts() if scripts is None else scripts

    def run(self, name: str, *, keys: tuple[str, ...], args: Sequence[str | int]) -> Any:
        """Run one script and return its answer as the client gives it.

        Raises: whatever redis-py raises. On repeat: see the script's header.
        """
        script = self._scripts[name]
        try:
            return self._client.evalsha(script.sha, len(keys), *keys, *args)
        except NoScriptError:
            # EVAL loads and runs at once, so no second flush can come in between.
            return self._client.eval(script.source, len(keys), *keys, *args)

    def run_all(self, name: str, calls: Sequence[Call]) -> list[Any]:
        """Run one script many times in one round trip; each call is (keys, args).

        A call that met no script is run again by itself, never those that had run already.
        Raises: the first other error redis-py reports. On repeat: see the script's header.
        """
        if len(calls) == 1:
            [(keys, args)] = calls
            return [self.run(name, keys=keys, args=args)]
        pipeline = self._client.pipeline(transaction=False)
        for keys, args in calls:
            pipeline.evalsha(self._scripts[name].sha, len(keys), *keys, *args)
        answers = pipeline.execute(raise_on_error=False)
        for number, answer in enumerate(answers):
            if isinstance(answer, NoScriptError):
                keys, args = calls[number]
                answers[number] = self.run(name, keys=keys, args=args)
            elif isinstance(answer, Exception):
                raise answer
        return answers
