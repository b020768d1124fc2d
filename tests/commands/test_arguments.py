"""What is typed after a command: plain numbers and text; all else is refused in one line."""

import io
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from jobs.management import arguments, commands
from kernel import Kernel

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (arguments.whole, "0", 0),
        (arguments.whole, "007", 7),
        (arguments.whole, "999999999", 999_999_999),
        (arguments.count, "1", 1),
        (arguments.port, "0", 0),
        (arguments.port, "65535", 65535),
        (arguments.number, "0", 0.0),
        (arguments.number, "0.0e9", 0.0),
        (arguments.number, ".5", 0.5),
        (arguments.number, "2.50", 2.5),
        (arguments.number, "1e-3", 0.001),
        (arguments.above_zero, "0.001", 0.001),
        (arguments.word, "wörter:t1 ✓", "wörter:t1 ✓"),
        (arguments.word, "", ""),
    ],
)
def test_what_is_meant_is_read(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


NO_NUMBERS = ["", " 3", "3 ", "1_0", "٣", "３", "-1", "+1", "0x10", "1,5", "3\n", "nan", "inf", "²"]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((arguments.whole, text) for text in [*NO_NUMBERS, "1.5", "1e3", "9" * 10, "9" * 5000]),
        *((arguments.number, text) for text in [*NO_NUMBERS, "-0.0", "1.", "e5", ".", "1e400"]),
        *((arguments.number, text) for text in ["1e-400", "0.00001e-320", "9" * 5000]),
        *((arguments.count, text) for text in ["0", "-1", "x"]),
        *((arguments.port, text) for text in ["65536", "99999", "-1", "http"]),
        *((arguments.above_zero, text) for text in ["0", "0.0", "1e-400", "-1"]),
        *((arguments.word, text) for text in ["\udcff", "a\0b"]),
    ],
)
def test_anything_else_is_refused_in_one_printable_line(
    read: Callable[[str], object], text: str
) -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        read(text)
    said = str(refused.value)
    assert said.isascii()
    assert said.isprintable()
    assert len(said) < 160


def test_no_command_reads_numbers_in_another_way() -> None:
    found = [
        path.name
        for folder in (Path(commands.__path__[0]), ROOT / "config/management/commands")
        for path in folder.glob("*.py")
        if {"type=int", "type=float"} & set(path.read_text().replace(",", " ").split())
    ]
    assert found == []


WHY = ("--reason", "x")


@pytest.mark.parametrize(
    "typed",
    [
        ("capacity", "set", "psp", "--max-concurrency", "1_0", *WHY),
        ("capacity", "set", "psp", "--max-starts-per-second", "1_0", *WHY),
        ("capacity", "set", "psp", "--max-starts-per-second", "1e-400", *WHY),
        ("capacity", "set", "psp", "--max-starts-per-second=-0.0", *WHY),
        ("capacity", "set", "psp", "--max-concurrency", "3", "--expires-in", "1_0", *WHY),
        ("capacity", "cooldown", "psp", "--seconds", "٣", *WHY),
        ("capacity", "set", "..", "--max-concurrency", "3", *WHY),
        ("capacity", "show", "\udcff"),
        ("workflows", "list", "--limit", "1_0"),
        ("workflows", "list", "--type", "\udcff"),
        ("workflows", "show", "\udcff"),
        ("workflows", "show", "wf_\udcff"),
        ("workflows", "why", "a\0b"),
        ("quota", "show", "\udcff"),
        ("webhook_secret", "\udcff"),
        ("create_token", "\udcff", "--ops"),
        ("adopt", "\udcff"),
        ("verify", "--limit", "1_0"),
    ],
)
def test_a_command_refuses_it_and_writes_nothing(kernel: Kernel, typed: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        call_command(*typed, stdout=io.StringIO(), stderr=io.StringIO())
    assert refused.value.returncode in {1, 2}
    assert "\n" not in str(refused.value)
    str(refused.value).encode(sys.stderr.encoding)
    assert kernel.capacity.resources() == []
