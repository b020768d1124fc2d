"""`manage.py up` as a person uses it: says where things are, survives a kill, stops clean."""

import io
import json
import os
import re
import sys
import threading
import urllib.request
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, getsignal, signal

import pytest

from config.embedded import pidfile
from config.management.commands.up import _Interruptions
from config.stack.spec import ProcessSpec
from config.stack.supervisor import Supervisor
from config.stack.terminal import Terminal
from tests.kit.processes import Child, python
from tests.kit.waiting import eventually

READY = r"Baton is up\."
OWN = ("BATON_MONGO_URL", "BATON_REDIS_URL", "BATON_BROKER_URL", "BATON_DATABASE_URL")


def up(folder: Path, *options: str) -> Child:
    environment: dict[str, str | None] = dict.fromkeys(OWN)
    environment["BATON_DATA_DIR"] = str(folder)
    return python("manage.py", "up", "--concurrency", "1", *options, env=environment)


def servers(folder: Path) -> list[pidfile.ProcessId]:
    records = [folder / "mongo" / "mongod.pid", folder / "redis" / "redis.pid"]
    found = [pidfile.read(record) for record in records]
    return [process for process in found if process is not None]


def stopped_in_order(output: str) -> list[str]:
    return re.findall(r"^(\S+) +\| stopping$", output, flags=re.MULTILINE)


def answer(url: str, token: str) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.status, json.load(response)


@pytest.mark.timeout(240)
def test_the_stack_serves_survives_a_dead_child_and_stops_in_order(tmp_path: Path) -> None:
    with up(tmp_path) as stack:
        stack.wait_for_line(READY, timeout=120)
        base = stack.wait_for_line(r"API +(http://\S+)/api/v1/").group(1)
        token = stack.wait_for_line(r"token +(\S+)").group(1)
        eventually(lambda: re.search(r"flower +\| .*Connected to", stack.output), timeout=60)
        assert not [line for line in stack.lines if re.search("warn|error", line, re.IGNORECASE)]
        assert answer(f"{base}/health/ready", token)[1]["status"] == "ok"
        assert answer(f"{base}/api/v1/jobs", token)[0] == 200
        assert workflows_listed(tmp_path) == "[]"

        running = servers(tmp_path)
        assert [process.is_alive() for process in running] == [True, True]
        web = int(stack_child(stack, "uvicorn"))
        os.kill(web, SIGKILL)
        stack.wait_for_line(r"web +\| ended with signal 9; starting again")
        eventually(lambda: answers(f"{base}/health/ready", token), timeout=60)

        stack.send(SIGINT)
        assert stack.wait(90) == 0
        assert stopped_in_order(stack.output) == [
            *("beat", "content", "media", "distribution", "control"),
            *("speech", "flower", "web"),
            *("redis", "mongod"),
        ]
        assert stack.lines[-1] == "everything has stopped"
        assert "Inspect method" not in stack.output, "Flower asked workers that were not there"
        assert not any(process.is_alive() for process in running)
        assert not (tmp_path / "stack.env").exists()


def test_an_interruption_while_starting_leaves_nothing_behind(tmp_path: Path) -> None:
    with up(tmp_path, "--no-flower") as stack:
        stack.wait_for_line(r"mongod +\| answers on port")
        running = servers(tmp_path)
        stack.send(SIGTERM)
        assert stack.wait(60) == 0
        assert running
        assert not any(process.is_alive() for process in running)


def test_an_interruption_swallowed_while_starting_still_stops_the_stack() -> None:
    """It may arrive inside a finalizer, where the interpreter drops what is raised."""
    before = {number: getsignal(number) for number in (SIGINT, SIGTERM)}
    try:
        interrupted = _Interruptions()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), SIGTERM)
        terminal = Terminal(io.StringIO())
        never_ends = ProcessSpec(name="sleeper", command=(sys.executable, "-c", "input()"))
        supervisor = Supervisor([never_ends], terminal=terminal, cwd=Path.cwd())
        interrupted.steer(supervisor, terminal)
        gives_up = threading.Timer(5.0, supervisor.request_kill)
        gives_up.start()
        supervisor.run()
        assert gives_up.is_alive(), "only the test's own patience ended it"
        gives_up.cancel()
    finally:
        for number, handler in before.items():
            signal(number, handler)


def test_a_second_stack_on_the_same_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with up(tmp_path, "--no-flower") as first:
        first.wait_for_line(r"mongod +\| answers on port")
        with up(tmp_path, "--no-flower") as second:
            assert second.wait(60) != 0
            assert "already runs on" in second.output
            assert "Traceback" not in second.output
        first.send(SIGTERM)
        first.wait(60)


def test_a_mongo_that_is_no_replica_set_is_refused_in_one_sentence(tmp_path: Path) -> None:
    environment = {"BATON_DATA_DIR": str(tmp_path), "BATON_MONGO_URL": "mongodb://127.0.0.1:1/"}
    with python("manage.py", "up", env=environment) as stack:
        assert stack.wait(60) != 0
        assert "rs.initiate()" in stack.output
        assert "Traceback" not in stack.output


def workflows_listed(folder: Path) -> str:
    """Ask in a second terminal, which knows the data folder only."""
    environment: dict[str, str | None] = {**dict.fromkeys(OWN), "BATON_DATA_DIR": str(folder)}
    with python("manage.py", "workflows", "list", "-o", "json", env=environment) as command:
        assert command.wait(60) == 0, command.output
        return "".join(command.lines).strip()


def answers(url: str, token: str) -> bool:
    try:
        return answer(url, token)[0] == 200
    except OSError:
        return False


def stack_child(stack: Child, word: str) -> str:
    """Return the pid of the stack's child whose command line holds `word`."""
    children = Path(f"/proc/{stack.pid}/task/{stack.pid}/children").read_text().split()
    for pid in children:
        if word in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise AssertionError(f"no child runs {word}")
