"""Runs mutants in copies of the tree, several at once, on servers all of them share.

Guarantees that the tree itself is never touched, that a suite which fails without any mutant is
told and not taken for a catch, that one which is merely slow here is an error of the run, and that
seeds are fixed, so that a result can be had again. Leaves which mutants there are to `catalogue`,
`further`, `missed` and `missed_of_lines`.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.kit import servers
from tests.mutants.mutant import ROOT, Mutant

#: Seconds a suite may take: what a mutant makes hang is caught as well.
_PATIENCE = 240
_HANGS = f"nothing ended within {_PATIENCE} s"
_LEFT_OUT = (".venv", ".git", ".data", "__pycache__", ".*_cache", ".hypothesis", "docs")
_NO_TESTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Which suite caught a mutant, None: none did; `test` is the first that failed."""

    mutant: Mutant
    caught_by: str | None
    test: str
    seconds: float


def grind(mutants: Sequence[Mutant], *, jobs: int) -> Iterator[Result]:
    """Yield the result of each mutant, in order."""
    leads = servers.lead_run()
    trees: SimpleQueue[Path] = SimpleQueue()
    found = servers.servers()
    environment = {
        **os.environ,
        "BATON_TEST_MONGO_URL": found.mongo_url,
        "BATON_TEST_REDIS_URL": found.redis_url,
        "BATON_SEED": "1",
        "BATON_INTERLEAVINGS": "60",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name in (servers.RUN_DIR, servers.LEADER):
        environment.pop(name)
    try:
        for number in range(jobs):
            trees.put(_copy(servers.run_dir() / f"tree-{number}"))
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(lambda mutant: _try(mutant, trees, environment), mutants)
    finally:
        if leads:
            servers.end_run()


def failing_suites(suites: Sequence[str], *, jobs: int) -> list[str]:
    """Return those of the suites that fail without any mutant."""
    whole = [
        Mutant(name=suite, breaks="", file="pyproject.toml", old="", new="", suites=(suite,))
        for suite in suites
    ]
    return [f"{r.mutant.name}: {r.test}" for r in grind(whole, jobs=jobs) if r.caught_by]


def _copy(tree: Path) -> Path:
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    (tree / ".venv").symlink_to((ROOT / ".venv").resolve())
    if (ROOT / "docs").is_dir():
        (tree / "docs").symlink_to(ROOT / "docs")
    return tree


def _try(mutant: Mutant, trees: "SimpleQueue[Path]", environment: dict[str, str]) -> Result:
    tree = trees.get()
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    began = time.monotonic()
    try:
        if mutant.old:
            file.write_text(mutant.applied_to(text), encoding="utf-8")
        for suite in mutant.suites:
            failed = _failure(suite, tree, environment)
            if failed == _HANGS:
                # On a busy machine a suite may take as long without any mutant.
                file.write_text(text, encoding="utf-8")
                if _failure(suite, tree, environment) == _HANGS:
                    raise RuntimeError(f"{suite} needs more than {_PATIENCE} s unbroken")
            if failed is not None:
                return _result(mutant, suite, failed, began)
    finally:
        file.write_text(text, encoding="utf-8")
        trees.put(tree)
    return _result(mutant, None, "", began)


def _result(mutant: Mutant, suite: str | None, test: str, began: float) -> Result:
    seconds = time.monotonic() - began
    return Result(mutant=mutant, caught_by=suite, test=test, seconds=seconds)


def _failure(suite: str, tree: Path, environment: dict[str, str]) -> str | None:
    """Run a suite up to its first failure; return the test that failed, None if none did."""
    command = [".venv/bin/python", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, suite], cwd=tree, env=environment, capture_output=True, text=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return _HANGS
    if done.returncode == 0:
        return None
    lines = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED tests", "ERROR tests"))
    ]
    if not lines or done.returncode == _NO_TESTS:
        raise RuntimeError(f"{suite} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return lines[0].split(" ", 1)[1].split(" - ", 1)[0]
