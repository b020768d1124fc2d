"""The documents name only what exists, and everything that must be documented is."""

import inspect
import re
from pathlib import Path

import pytest

from kernel import errors
from tests.repo.sources import ROOT, lines, name_of

DOCUMENTS = sorted(
    file
    for file in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if file.name != "CHANGELOG.md"
)
#: The documents that must be there.
REQUIRED = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs/protocol.md",
    "docs/glossary.md",
    "docs/errors.md",
    "docs/api.md",
    "docs/adding-a-workflow.md",
)
TOP_LEVEL = ("kernel", "jobs", "ops_console", "config", "lua", "tests", "bench", "docs")
_PATH = re.compile(rf"`((?:{'|'.join(TOP_LEVEL)})/[\w./*-]*|[\w.-]+\.(?:md|toml|yml|lock))`")
_TARGET = re.compile(r"\bmake ([a-z]+)\b(?!\.)")


def error_classes() -> list[type[BaseException]]:
    return [
        thing
        for _, thing in inspect.getmembers(errors, inspect.isclass)
        if issubclass(thing, BaseException) and thing.__module__ == errors.__name__
    ]


@pytest.mark.parametrize("name", REQUIRED)
def test_the_document_exists_and_says_something(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8")) > 300


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_paths_named_in_a_document_exist(document: Path) -> None:
    named = _PATH.findall(document.read_text(encoding="utf-8"))
    missing = [
        path
        for path in named
        if not any(next(folder.glob(path.rstrip("/")), None) for folder in (ROOT, document.parent))
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", document.read_text("utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_make_targets_named_in_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    existing = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for code in re.findall(r"`([^`]+)`", document.read_text(encoding="utf-8"))
        for target in _TARGET.findall(code)
    }
    assert named - existing == set()


def test_every_error_and_its_code_is_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    missing = [
        f"{error.__name__} ({code})"
        for error in error_classes()
        if not re.search(rf"`{error.__name__}`", text)
        or ((code := getattr(error, "code", "")) and f"`{code}`" not in text)
    ]
    assert missing == []


def test_every_setting_of_the_environment_is_documented() -> None:
    source = "\n".join(lines(ROOT / "config" / "settings" / "env.py"))
    fields = re.findall(r"^    ([a-z][a-z_]+): ", source, flags=re.MULTILINE)
    documented = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    names = {f"BATON_{field.upper()}" for field in fields if field != "model_config"}
    assert {name for name in names if name not in documented} == set()
