"""What Celery is configured to do, and how long it may hold a request up."""

import socket
import time
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from config.celery import WakeupCelery, app
from jobs import wakeups
from jobs.runtime import using_kernel
from kernel import Kernel, KernelConfig
from tests.kit.processes import python


def celery_at(url: str) -> WakeupCelery:
    """The project's application on another broker."""
    other = WakeupCelery("tests", set_as_current=False)
    other.config_from_object("config.settings.transport")
    other.conf.update(broker_url=url)
    return other


def test_celery_is_trusted_with_nothing() -> None:
    conf = app.conf
    assert list(conf.accept_content) == ["json"]
    assert conf.task_serializer == "json"
    assert not conf.result_backend
    assert conf.task_ignore_result
    assert (conf.task_time_limit, conf.task_soft_time_limit) == (None, None)
    assert conf.worker_prefetch_multiplier == 1
    assert conf.worker_disable_prefetch
    assert not conf.task_acks_late
    assert conf.broker_connection_max_retries is None
    assert conf.broker_connection_retry_on_startup
    assert conf.enable_utc
    schedule = {entry["task"]: entry for entry in conf.beat_schedule.values()}
    assert set(schedule) == {"baton.tick", "baton.reconcile"}
    assert schedule["baton.tick"]["schedule"] == 1.0
    for name, entry in schedule.items():
        assert entry["options"] == {"queue": "control", "expires": 3600}
        assert conf.task_routes[name] == {"queue": "control"}


@pytest.mark.parametrize("answering", [False, True])
def test_ringing_a_dead_or_silent_broker_gives_up_quickly(answering: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if not answering:
            silent.close()
        other = celery_at(f"redis://127.0.0.1:{port}/0")
        started = time.monotonic()
        with pytest.raises(OperationalError):
            other.send_task("baton.wake", args=["content"], queue="content", retry=False)
        assert time.monotonic() - started < 1.5
        other.close()


def test_publishers_and_beat_load_no_activity_code(stack_env: dict[str, str]) -> None:
    code = (
        "import sys, django; django.setup();"
        "import config.urls, config.celery, jobs.wakeups;"
        "from config.celery import app; app.loader.import_default_modules();"
        "import celery.beat;"
        "from jobs.runtime import get_kernel; get_kernel().close();"
        "found = [n for n in sys.modules if n.startswith(('jobs.activities', 'jobs.workflows',"
        " 'jobs.fetching', 'trafilatura'))];"
        "print('found', found)"
    )
    with python("-c", code, env=stack_env) as child:
        child.wait_for_line(r"found \[\]")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://broker.example/0", "QuarantineTransport None False True"),
        ("rediss://broker.example/0", "QuarantineTransport CERT_REQUIRED False True"),
        ("amqp://broker.example//", "Transport None True False"),
    ],
)
def test_each_kind_of_broker_gets_its_own_settings(
    stack_env: dict[str, str], url: str, expected: str
) -> None:
    code = (
        "import django; django.setup(); from config.celery import app;"
        "found = app.connection_for_read();"
        "tls = found.ssl['ssl_cert_reqs'].name if found.ssl else None;"
        "print('found', found.get_transport_cls().__name__, tls,"
        " app.conf.task_acks_late, app.conf.worker_disable_prefetch)"
    )
    with python("-c", code, env={**stack_env, "BATON_BROKER_URL": url}) as child:
        child.wait_for_line(f"found {expected}")


@pytest.mark.parametrize("queue", [None, 5, "", "nonsense", "x" * 10_000, {"a": 1}, "control"])
def test_a_wakeup_for_no_queue_of_ours_is_dropped(
    queue: Any, caplog: pytest.LogCaptureFixture, kernel: Kernel
) -> None:
    with using_kernel(kernel):
        wakeups.wake(queue)
    assert "wakeup for an unknown queue dropped" in caplog.text


def test_tasks_survive_a_store_that_is_away(
    caplog: pytest.LogCaptureFixture, transactional_db: None, impatient_store: None
) -> None:
    dead = Kernel.connect(
        KernelConfig(
            mongo_url="mongodb://127.0.0.1:1/?replicaSet=rs0", redis_url="redis://127.0.0.1:1/0"
        )
    )
    with using_kernel(dead):
        wakeups.wake("content")
        wakeups.tick()
        wakeups.reconcile()
    dead.close()
    assert "could not be done now" in caplog.text
    assert not [record for record in caplog.records if record.exc_info]
