"""Files and functions stay small enough to be read in one sitting."""

import ast
from collections.abc import Iterator

from tests.repo.sources import PRODUCT, files, lines, name_of, python_files, tree

MODULE_LINES = 350
FUNCTION_LINES = 50
LUA_LINES = 120
TEST_LINES = 500
#: Names that say nothing about what is inside.
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "base", "stuff"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(module: ast.Module) -> Iterator[Function]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: Function) -> int:
    """Count the lines of a function's body, its docstring left out."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    if not body:
        return 0
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_modules_stay_within_their_limit() -> None:
    counted = {name_of(file): len(lines(file)) for file in python_files(*PRODUCT, "bench")}
    assert {name: n for name, n in counted.items() if n > MODULE_LINES} == {}


def test_test_files_stay_within_their_limit() -> None:
    counted = {name_of(file): len(lines(file)) for file in python_files("tests")}
    assert {name: n for name, n in counted.items() if n > TEST_LINES} == {}


def test_functions_stay_within_their_limit() -> None:
    long = {
        f"{name_of(file)}:{function.lineno} {function.name}": body_lines(function)
        for file in python_files(*PRODUCT, "bench", "tests")
        for function in functions(tree(file))
        if body_lines(function) > FUNCTION_LINES
    }
    assert long == {}


def test_lua_scripts_stay_within_their_limit() -> None:
    counted = {name_of(file): len(lines(file)) for file in files() if file.suffix == ".lua"}
    assert {name: n for name, n in counted.items() if n > LUA_LINES} == {}


def test_modules_are_named_for_their_subject() -> None:
    nameless = [
        name_of(file)
        for file in python_files(*PRODUCT, "bench", "tests")
        if {file.stem, *file.parent.parts} & NAMELESS
    ]
    assert nameless == []
