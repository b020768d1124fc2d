"""Every module introduces itself, and nothing unfinished or machine-bound is written down."""

import ast
import re
from pathlib import Path

import pytest

from tests.repo.sources import PRODUCT, lines, name_of, python_files, text_files, tree

#: What must not be written, and what to do instead. The patterns are split up so that this file
#: does not find itself.
BANNED = {
    r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b": "finish it, or file an issue and leave no mark",
    r"@pytest\.mark\.(sk" r"ip|skipif|xf" r"ail)\b|pytest\.(sk" r"ip|xf" r"ail)\(": (
        "a test runs or does not exist"
    ),
    r"(?<![\w.])/(home|Users|root|wo" r"rk)/\w": "no path of one machine",
    r"^(<{7}|>{7}) ": "resolve the conflict",
    r"\bNotImplemented" r"Error\b": "build it, or raise the typed NotAvailable",
}


@pytest.mark.parametrize(("pattern", "instead"), BANNED.items(), ids=BANNED.values())
def test_banned_words_appear_nowhere(pattern: str, instead: str) -> None:
    found = [
        f"{name_of(file)}:{number}: {line.strip()}"
        for file in text_files()
        for number, line in enumerate(lines(file), start=1)
        if re.search(pattern, line)
    ]
    assert found == [], instead


def test_every_module_has_a_docstring() -> None:
    silent = [
        name_of(file)
        for file in python_files(*PRODUCT, "bench", "tests")
        if ast.get_docstring(tree(file)) is None
    ]
    assert silent == []


def test_every_module_begins_with_a_sentence_of_duty() -> None:
    wordless = [
        name_of(file)
        for file in python_files(*PRODUCT, "bench", "tests")
        if not re.search(r"[.;:)]$", docstring_paragraphs(file)[0])
    ]
    assert wordless == []


def test_modules_that_take_more_than_a_screen_say_what_they_guarantee() -> None:
    terse = [
        name_of(file)
        for file in python_files(*PRODUCT)
        if len(lines(file)) > 100 and len(docstring_paragraphs(file)) < 2
    ]
    assert terse == []


def docstring_paragraphs(file: Path) -> list[str]:
    return (ast.get_docstring(tree(file)) or "").split("\n\n")


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    sleepers = [
        f"{name_of(file)}:{node.lineno}"
        for file in python_files("tests")
        if "kit" not in file.parts
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
    ]
    assert sleepers == []
