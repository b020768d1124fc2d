"""The bundled mongod through starts, crashes, stolen ports and refusals."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymongo import MongoClient, WriteConcern

from config.embedded import (
    AlreadyRunning,
    MongoServer,
    PlatformNotServed,
    PortTaken,
    RedisServer,
    StartFailed,
    binaries,
    pidfile,
    require_replica_set,
)
from kernel import NotAReplicaSet
from tests.kit.processes import python_code
from tests.kit.waiting import eventually


def insert_durably(url: str, value: int) -> None:
    with MongoClient[dict[str, int]](url) as client:
        facts = client.kept.facts.with_options(write_concern=WriteConcern("majority", j=True))
        facts.insert_one({"value": value})


def values(url: str) -> list[int]:
    with MongoClient[dict[str, int]](url) as client:
        return sorted(fact["value"] for fact in client.kept.facts.find())


@contextmanager
def occupied(port: int) -> Iterator[None]:
    """Hold a port as another program would: it hangs up on whoever calls."""
    with socket.create_server(("127.0.0.1", port)) as listener:

        def hang_up() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.close()

        answering = threading.Thread(target=hang_up, daemon=True)
        answering.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        answering.join(5.0)


def test_facts_survive_a_hard_kill_and_the_port_stays(tmp_path: Path) -> None:
    with MongoServer(tmp_path) as server:
        require_replica_set(server.url)
        insert_durably(server.url, 1)
        port = server.port
        server.kill()
        server.start()
        assert server.port == port
        assert values(server.url) == [1]


def test_facts_survive_a_lost_port(tmp_path: Path) -> None:
    with MongoServer(tmp_path) as server:
        insert_durably(server.url, 1)
        port = server.port
        server.kill()
        with occupied(port):
            server.start()
        assert server.port != port
        require_replica_set(server.url)
        insert_durably(server.url, 2)
        assert values(server.url) == [1, 2]


def test_a_second_start_on_one_folder_is_refused(tmp_path: Path) -> None:
    with MongoServer(tmp_path) as server:
        with pytest.raises(AlreadyRunning, match=f"process {server.pid}"):
            MongoServer(tmp_path).start()
        require_replica_set(server.url)


def test_a_pid_file_of_another_process_is_not_believed(tmp_path: Path) -> None:
    living = pidfile.ProcessId.of(1)
    pidfile.write(tmp_path / "redis.pid", pidfile.ProcessId(pid=living.pid, started="never"))
    with RedisServer(tmp_path) as server:
        assert server.is_alive()


def test_a_port_given_by_the_caller_is_never_replaced(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)):
            RedisServer(tmp_path, port).start()


def test_a_port_stolen_between_choice_and_bind_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as thief:
        stolen = thief.getsockname()[1]
        fresh = iter([stolen, 0])
        choose = RedisServer._choose_port
        monkeypatch.setattr(
            RedisServer, "_choose_port", lambda server: next(fresh) or choose(server)
        )
        with RedisServer(tmp_path) as server:
            assert server.port != stolen


class MisspeltMongo(MongoServer):
    """A mongod that ends at once, quoting what it was given."""

    def _command(self, port: int) -> list[str]:
        return [*super()._command(port), "--misspelt"]


def test_a_server_that_cannot_start_says_why_and_what_else_to_use(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match=r"BATON_MONGO_URL[\s\S]*misspelt"):
        MisspeltMongo(tmp_path).start()


def test_a_server_does_not_outlive_a_killed_owner(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, threading\n"
        "from config.embedded import RedisServer\n"
        "server = RedisServer(pathlib.Path(sys.argv[1])); server.start()\n"
        "print('pid', server.pid, flush=True); threading.Event().wait()"
    )
    with python_code(code, str(tmp_path)) as owner:
        server = pidfile.ProcessId.of(int(owner.wait_for_line(r"pid (\d+)").group(1)))
        assert server.is_alive()
        owner.kill_group()
        eventually(lambda: not server.is_alive(), message="redis outlived its owner")


def test_a_platform_without_the_wheel_is_told_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_files", lambda _wheel: [])
    with pytest.raises(PlatformNotServed, match=r"set BATON_MONGO_URL to a replica set"):
        MongoServer(tmp_path / "mongo").start()
    with pytest.raises(PlatformNotServed, match=r"set BATON_REDIS_URL to a server"):
        RedisServer(tmp_path / "redis").start()


class StandaloneMongo(MongoServer):
    """A mongod without a replica set, as people often have one."""

    def _command(self, port: int) -> list[str]:
        command = list(super()._command(port))
        at = command.index("--replSet")
        return command[:at] + command[at + 2 :]

    def _prepare(self) -> None:
        """Leave the server alone."""


def test_a_standalone_mongod_is_refused_with_the_fix(tmp_path: Path) -> None:
    with StandaloneMongo(tmp_path) as server:
        for url in (f"mongodb://127.0.0.1:{server.port}", server.url):
            with pytest.raises(NotAReplicaSet, match=r"rs\.initiate\(\)"):
                require_replica_set(url, timeout=1.0)


@pytest.mark.parametrize("url", ["mongodb://127.0.0.1:1/?replicaSet=rs0", "http://x", "mongodb://"])
def test_an_address_that_does_not_work_is_refused_with_the_fix(url: str) -> None:
    with pytest.raises(NotAReplicaSet, match="BATON_MONGO_URL"):
        require_replica_set(url, timeout=0.2)
