"""The lock file pins everything by hash, names no index, and follows pyproject.toml."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repo.sources import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", LOCK, flags=re.MULTILINE)


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in [*project["dependencies"], *extras]]


def test_every_pin_has_hashes() -> None:
    blocks = re.split(r"\n(?=\S)", LOCK.strip())
    pins = [block for block in blocks if re.match(r"[A-Za-z0-9]", block)]
    assert len(pins) == len(PINS) > 0
    assert [block.splitlines()[0] for block in pins if "--hash=sha256:" not in block] == []


def test_no_index_or_machine_is_named() -> None:
    forbidden = r"(?m)^\s*(-i\b|-f\b|--index-url|--extra-index-url|--find-links|--trusted-host)"
    assert re.findall(forbidden, LOCK) == []
    assert re.findall(r"https?://|file:", LOCK) == []


def test_each_requirement_of_the_project_is_pinned_within_its_range() -> None:
    pinned = {canonicalize_name(name): version for name, version in PINS}
    wrong = {
        str(requirement): pinned.get(canonicalize_name(requirement.name))
        for requirement in declared()
        if not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"))
    }
    assert wrong == {}, "run `make lock`"


def test_platform_markers_of_the_project_reach_the_lock() -> None:
    for requirement in declared():
        if requirement.marker is not None:
            line = next(
                line for line in LOCK.splitlines() if line.startswith(f"{requirement.name}==")
            )
            assert ";" in line, f"{requirement.name} would be demanded everywhere: run `make lock`"
