"""docker-compose.yml is valid and runs what the dev stack runs."""

import re
import shlex
from collections.abc import Sequence
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
    merged = yaml.safe_load(TEXT)  # the reader takes no merge keys (<<), which Compose does
    compose_spec.PyCompose.from_yaml(yaml.safe_dump(merged))


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


def test_workers_beat_and_flower_run_as_in_the_dev_stack() -> None:
    own = ("--address", "--port", "--schedule", "/", "-c")

    def words(command: Sequence[str]) -> list[str]:
        after = command[command.index("celery") + 1 :]
        return [word for word in after if not word.startswith(own) and not word.isdigit()]

    specs = [
        *(services.worker(queue, concurrency=1, env={}) for queue in services.WORK_QUEUES),
        services.worker(services.CONTROL_QUEUE, concurrency=1, env={}),
        services.beat(Path("/tmp"), {}),
        services.flower(services.FLOWER_PORT, "user:password", {}),
    ]
    commands = [service.get("command", []) for service in compose_services().values()]
    there = [words(command) for command in commands if "celery" in command]
    assert sorted(there) == sorted(words(spec.command) for spec in specs)


def test_the_health_check_of_the_web_process_is_answered_whatever_names_it_serves() -> None:
    web = compose_services()["web"]
    assert "//127.0.0.1:" in web["healthcheck"]["test"][-1]
    assert "127.0.0.1" in web["environment"]["BATON_ALLOWED_HOSTS"].partition("$")[0]


def test_secrets_come_from_outside_and_ports_stay_on_the_loopback() -> None:
    commands = [service.get("command", []) for service in compose_services().values()]
    assert ".env" in (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name in ("POSTGRES_PASSWORD", "BATON_SECRET_KEY", "FLOWER_BASIC_AUTH"):
        assert f"${{{name}:?" in TEXT
        assert not any(name in word for words in commands for word in words)
    for service in compose_services().values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def image_runs() -> list[str]:
    """Return what the image runs while it is built, each as one line, comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    return re.findall(r"^RUN (.+)$", text.replace("\\\n", " "), flags=re.MULTILINE)


def test_what_the_image_runs_is_compiled_when_it_is_built() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "PYTHONDONTWRITEBYTECODE" not in text
    last = text[text.index("COPY . .") : text.index("USER baton")]
    assert "python -m compileall -q -j 0 . " in last, "nobody may write there later"


def test_folders_of_volumes_belong_to_the_user_of_the_image() -> None:
    [made] = [run for run in image_runs() if "--owner=baton" in run]
    mounts = [
        volume.partition(":")[2]
        for service in compose_services().values()
        for volume in service.get("volumes", [])
        if service["image"] == "baton:local"
    ]
    assert mounts
    assert all(mount in made.split() for mount in mounts)


def test_the_image_installs_from_the_lock_with_hashes() -> None:
    installs = [shlex.split(run) for run in image_runs() if "pip install" in run]
    assert installs
    assert all("--require-hashes" in install for install in installs)
