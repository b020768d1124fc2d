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


EATEN = """
import os, signal, time
from config.management.commands.demo import heed_interruptions
heed_interruptions()
class Gone:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)
try:
    Gone()
    time.sleep(30)
except KeyboardInterrupt:
    print("heeded")
"""


def test_an_interruption_eaten_by_a_finalizer_comes_again() -> None:
    with python("-c", EATEN, env=OWN) as child:
        assert child.wait(60) == 0
        assert child.lines[-1] == "heeded"
