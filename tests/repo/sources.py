"""Where the repository keeps what kind of file, for the rules that walk over them.

Guarantees that ignored folders and generated migrations never count. Leaves the rules to the tests.
"""

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("kernel", "jobs", "ops_console", "config")
TEXT_SUFFIXES = {".py", ".lua", ".md", ".toml", ".yml", ".html", ".css", ".js", ".txt", ""}


def name_of(file: Path) -> str:
    """Return a file's path inside the repository, as it is written in messages."""
    return file.relative_to(ROOT).as_posix()


@functools.cache
def files() -> tuple[Path, ...]:
    """Return every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    found = (ROOT / name for name in listed if name)
    return tuple(sorted(file for file in found if file.is_file()))


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below `folders`, migrations aside."""
    return [
        file
        for file in files()
        if file.suffix == ".py"
        and file.relative_to(ROOT).parts[0] in folders
        and "migrations" not in file.parts
    ]


def text_files() -> list[Path]:
    """Return every file people write by hand; data and the lock file are left out."""
    skipped = {"requirements.lock", "LICENSE"}
    return [file for file in files() if file.suffix in TEXT_SUFFIXES and file.name not in skipped]


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=name_of(file))
