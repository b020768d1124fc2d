"""docker-compose.yml is valid and runs what the dev stack runs."""

import shlex
from pathlib import Path
from typing import Any

import compose_spec
import yaml

from config.stack import services

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


def compose_services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TEXT)["services"]
    return found


def consumed_queues() -> set[str]:
    commands = [service.get("command", []) for service in compose_services().values()]
    return {command[command.index("-Q") + 1] for command in commands if "-Q" in command}


def test_the_file_follows_the_compose_specification() -> None:
    compose_spec.PyCompose.from_yaml(TEXT)


def test_every_queue_of_the_dev_stack_has_its_worker() -> None:
    assert consumed_queues() == {*services.WORK_QUEUES, services.CONTROL_QUEUE}


def test_beat_web_and_flower_run_once_each_with_the_schema_prepared_first() -> None:
    found = compose_services()
    for name in ("web", "beat", "flower", "worker-content", "worker-control"):
        needs = found[name]["depends_on"]
        assert needs["prepare"]["condition"] == "service_completed_successfully", name
    assert sum("beat" in service.get("command", []) for service in found.values()) == 1
    assert "prepare" in found["prepare"]["command"]


def test_workers_get_the_time_to_finish_their_steps() -> None:
    for name, service in compose_services().items():
        if name.startswith("worker-"):
            seconds = int(service["stop_grace_period"].removesuffix("s"))
            assert seconds >= services.WORKER_STOP_TIMEOUT


def test_secrets_come_from_outside_and_ports_stay_on_the_loopback() -> None:
    for name in ("POSTGRES_PASSWORD", "BATON_SECRET_KEY", "FLOWER_BASIC_AUTH"):
        assert f"${{{name}:?" in TEXT
    for service in compose_services().values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_image_installs_from_the_lock_with_hashes() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installs = [shlex.split(line) for line in lines if "pip install" in line]
    assert installs
    assert all("--require-hashes" in install for install in installs)
