"""More mutants that no test had noticed when they were tried first: of long lines and of cells."""

from tests.mutants.mutant import Mutant

_CELLS = "tests/keeper/test_cells.py"
_KEEPER = "tests/keeper/test_keeper.py"
_JOINING = "tests/capacity/test_joining.py"
_GATHERING = "tests/capacity/test_gathering.py"
_ODD = "tests/capacity/test_odd_rows.py"

MISSED_OF_LINES = (
    Mutant(
        name="cells that were used forgotten",
        breaks="a claim in a higher cell is neither renewed nor freed while a lower one is used",
        file="kernel/keeper/child.py",
        old="self._cells = max(self._cells, cell + 1)",
        new="self._cells = cell + 1",
        suites=(_CELLS,),
    ),
    Mutant(
        name="area told apart by pid alone",
        breaks="the claims of a successor with the pid of the dead are freed while it lives",
        file="kernel/keeper/slots.py",
        old="after[1:3] != head[1:3]",
        new="after[1:2] != head[1:2]",
        suites=(_CELLS,),
    ),
    Mutant(
        name="buried as looked at",
        breaks="a claim its child took just before death is left to its lease",
        file="kernel/keeper/keeper.py",
        old="(*dead.claims, *latest)",
        new="dead.claims",
        suites=(_KEEPER,),
    ),
    Mutant(
        name="buried with its successor's claims",
        breaks="a living child's claims are freed because its predecessor died",
        file="kernel/keeper/keeper.py",
        old=" and last.process == dead.process",
        new="",
        suites=(_KEEPER,),
    ),
    Mutant(
        name="joined for ever",
        breaks="every later look says that somebody waits, and whoever comes new is refused",
        file="kernel/engine/handing_on.py",
        old="self._soon.pop(resource, None)",
        new="self._soon.get(resource)",
        suites=(_JOINING,),
    ),
    Mutant(
        name="joined seen in the line only",
        breaks="who joined a line that was cleared meanwhile stands beside a free place",
        file="kernel/engine/handing_on.py",
        old="if is_joined is not None or self._sightings.has_line(resource):",
        new="if self._sightings.has_line(resource):",
        suites=(_JOINING,),
    ),
    Mutant(
        name="a long line postpones all",
        breaks="a free place of another resource stands idle for the one with a long line",
        file="kernel/engine/handing_on.py",
        old="self.look_again(sorted(names - joined))",
        new="self.look_again(() if joined else sorted(names))",
        suites=(_JOINING,),
    ),
    Mutant(
        name="refusals not yet told do not count",
        breaks="a line is looked at for each that joins it, until its length is written",
        file="kernel/engine/handing_on.py",
        old="more=self._groups.unasked(name)",
        new="more=0",
        suites=(_JOINING,),
    ),
    Mutant(
        name="whole front with those handed on",
        breaks="one that was handed a place is passed another's permit beside it",
        file="kernel/store/waiters.py",
        old="found = {**_in_line(resource), **self._not_due()}\n        with translated():\n"
        "            rows",
        new="found = {**_in_line(resource)}\n        with translated():\n            rows",
        suites=(_JOINING,),
    ),
    Mutant(
        name="kept in vain",
        breaks="a place kept for one that got none elsewhere stands idle for five seconds",
        file="kernel/engine/handing_on.py",
        old="                self._choosing.give_back(left, chosen)\n",
        new="",
        suites=(_GATHERING,),
    ),
    Mutant(
        name="nobody told what was kept in vain",
        breaks="who found it kept stands beside a free place until the next tick",
        file="kernel/engine/handing_on.py",
        old="            self._look_soon(chosen.places.given_back, is_joined=False)\n",
        new="",
        suites=(_GATHERING,),
    ),
    Mutant(
        name="steps of any kind",
        breaks="one document whose steps are no object stops a line",
        file="kernel/store/standing.py",
        old='{"$eq": [{"$type": "$steps"}, "object"]}, {"$objectToArray"',
        new='True, {"$objectToArray"',
        suites=(_ODD,),
    ),
)
