"""One is singular, in what commands and the console say."""

import pytest

from jobs.counted import counted


@pytest.mark.parametrize(("number", "said"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs")])
def test_one_is_singular(number: int, said: str) -> None:
    assert counted(number, "job") == said
