"""`manage.py demo` keeps its promise, and says so in its last line."""

import re
from signal import SIGTERM

import pytest

from tests.kit.processes import python

OWN = dict.fromkeys(("BATON_MONGO_URL", "BATON_REDIS_URL", "BATON_BROKER_URL"))


@pytest.mark.timeout(300)
def test_the_demonstration_ends_well_and_proves_it() -> None:
    with python("manage.py", "demo", env=OWN) as demo:
        status = demo.wait(240)
        assert (status, demo.lines[-1]) == (0, "demo: ok"), demo.output
        assert "fetch_page   was cut off and ran again as attempt 2" in demo.output
        assert re.search(r"SIGKILL \d+", demo.output)
        assert "Traceback" not in demo.output


def test_an_interrupted_demonstration_says_so_and_fails() -> None:
    with python("manage.py", "demo", env=OWN) as demo:
        demo.wait_for_line(r"mongod +\| answers on port")
        demo.send(SIGTERM)
        assert demo.wait(90) == 1
        assert demo.lines[-1] == "demo: FAILED: interrupted"
