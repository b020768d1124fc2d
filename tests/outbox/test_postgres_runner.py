"""The PostgreSQL of a test run says clearly when there is none, and never hides a failure."""

import sys
from pathlib import Path

import pytest

from tests.kit import postgres
from tests.kit.processes import ROOT


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(postgres.BINARIES, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "_DEBIAN", tmp_path)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(("options", "status"), [([], 3), (["--optional"], 0)])
def test_missing_postgres_is_said_and_is_a_failure_unless_optional(
    options: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["postgres", *options, "false"])
    assert postgres.main() == status
    assert "PostgreSQL is not installed" in capsys.readouterr().err


@pytest.mark.usefixtures("nowhere")
def test_newest_of_several_versions_is_taken(tmp_path: Path) -> None:
    for version in ("9", "15", "14"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        (folder / "initdb").touch()
    assert postgres.find_binaries() == tmp_path / "15" / "bin"


def test_make_runs_the_outbox_on_it() -> None:
    text = (Path(ROOT) / "Makefile").read_text(encoding="utf-8")
    assert "OUTBOX := tests/dispatch tests/outbox tests/quota" in text
    assert all((Path(ROOT) / folder).is_dir() for folder in ("tests/dispatch", "tests/quota"))
