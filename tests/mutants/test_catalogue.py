"""Every mutant still has a place to break, and the tests it names are there."""

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.further import FURTHER
from tests.mutants.missed import MISSED
from tests.mutants.missed_of_lines import MISSED_OF_LINES
from tests.mutants.mutant import ROOT, Moved, Mutant

EVERY = (*MUTANTS, *FURTHER, *MISSED, *MISSED_OF_LINES)


@pytest.mark.parametrize("mutant", EVERY, ids=lambda mutant: mutant.name)
def test_mutant_breaks_text_that_is_there(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    broken = mutant.applied_to(text)
    assert broken != text
    if mutant.file.endswith(".py"):
        compile(broken, mutant.file, "exec")
    assert mutant.suites
    assert all((ROOT / suite).exists() for suite in mutant.suites)


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in EVERY}) == len(EVERY)


@pytest.mark.parametrize("text", ["", "guard guard"])
def test_text_that_moved_is_an_error(text: str) -> None:
    mutant = Mutant(name="m", breaks="", file="f", old="guard", new="", suites=("s",))
    with pytest.raises(Moved):
        mutant.applied_to(text)
