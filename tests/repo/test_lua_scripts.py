"""Each Lua script introduces itself and has a test file of its own name."""

import re
from pathlib import Path

import pytest

from tests.repo.sources import ROOT

SCRIPTS = sorted((ROOT / "lua").glob("*.lua"))


def header(script: Path) -> str:
    """Return the comment at the top of a script."""
    text = script.read_text(encoding="utf-8")
    match = re.match(r"(?:--.*\n)+", text)
    return match.group() if match else ""


def test_there_are_scripts() -> None:
    assert SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
@pytest.mark.parametrize("word", ["KEYS", "ARGV", "Returns", "Cost", "On repeat"])
def test_the_header_says(script: Path, word: str) -> None:
    assert re.search(rf"^--\s*{word}\b", header(script), flags=re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_header_begins_with_a_sentence_about_its_purpose(script: Path) -> None:
    assert re.match(r"-- [A-Z][^\n]{20,}", header(script))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_it_has_a_test_of_its_own(script: Path) -> None:
    assert (ROOT / "tests" / "lua" / f"test_{script.stem}.py").is_file()
