"""`manage.py demo` keeps its promise, and says so in its last line."""

import re
from signal import SIGTERM

import pytest

from tests.kit.processes import python

OWN = dict.fromkeys(
    ("BATON_MONGO_URL", "BATON_REDIS_URL", "BATON_BROKER_URL", "BATON_SPEECH_SERVICE_URL")
)


@pytest.mark.timeout(300)
def test_the_demonstration_ends_well_and_proves_it() -> None:
    with python("manage.py", "demo", env=OWN) as demo:
        status = demo.wait(240)
        assert (status, demo.lines[-1]) == (0, "demo: ok"), demo.output
        assert "fetch_page   was cut off and ran again as attempt 2" in demo.output
        assert len(re.findall(r"SIGKILL \d+", demo.output)) == 2
        submitted = re.search(r"submitted it as (speech_\w+)", demo.output)
        asked = re.search(r"asked for (speech_\w+); the service saw one submission", demo.output)
        assert submitted is not None
        assert asked is not None
        assert submitted[1] == asked[1]
        assert "live.fanout rang twice, once at each job" in demo.output
        assert "Traceback" not in demo.output


def test_an_interrupted_demonstration_says_so_and_fails() -> None:
    with python("manage.py", "demo", env=OWN) as demo:
        demo.wait_for_line(r"mongod +\| answers on port")
        demo.send(SIGTERM)
        assert demo.wait(90) == 1
        assert demo.lines[-1] == "demo: FAILED: interrupted"
