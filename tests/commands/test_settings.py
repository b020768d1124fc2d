"""The environment: what is read, and what a bad value is answered with."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from config.settings.databases import business_database
from config.settings.env import read_environment
from config.settings.secret import load_or_create_secret_key

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BATON_MONGO_URL", "http://example.org"),
        ("BATON_REDIS_URL", "localhost:6379"),
        ("BATON_BROKER_URL", "sqs://"),
        ("BATON_DATABASE_URL", "mysql://x/y"),
        ("BATON_SPEECH_URL", "api.example"),
        ("BATON_PUBLIC_URL", "ftp://example.org"),
        ("BATON_LEASE_SECONDS", "soon"),
        ("BATON_LEASE_SECONDS", "-77"),
        ("BATON_CLOCK_OFFSET_MS", "1.5"),
        ("BATON_DATABASE", "a/b"),
        ("BATON_KEY_PREFIX", "a b"),
        ("BATON_SECRET_KEY", "short"),
        ("BATON_DEBUG", "perhaps"),
        ("BATON_SLOTS_PER_CHILD", "0"),
        ("BATON_SLOTS_PER_CHILD", "33"),
        ("BATON_SLOTS_PER_CHILD", "audio=2,content"),
        ("BATON_SLOTS_PER_CHILD", "media=many"),
        ("BATON_GROUP_COMMITS", "0"),
        ("BATON_LOG_LEVEL", "LOUD"),
    ],
)
def test_a_bad_value_is_named_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured) as refused:
        read_environment()
    assert name in str(refused.value)
    assert value not in str(refused.value).replace(name, "")


@pytest.mark.parametrize(
    "command",
    [
        ["manage.py", "verify"],
        ["-m", "celery", "-A", "config", "report"],
        ["-c", "import config.asgi"],
    ],
)
def test_a_bad_value_stops_every_process_with_one_line_and_status_2(
    command: list[str], tmp_path: Path
) -> None:
    environ = {**os.environ, "BATON_MONGO_URL": "nonsense", "BATON_DATA_DIR": str(tmp_path)}
    environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "BATON_MONGO_URL: the URL must start with mongodb://" in done.stderr


def test_lists_are_split_and_empty_means_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_TYPES_OFF", "content.article, order.sync,,")
    monkeypatch.setenv("BATON_ALLOWED_HOSTS", "a.example,b.example")
    monkeypatch.setenv("BATON_REDIS_URL", "")
    monkeypatch.setenv("BATON_BROKER_URL", " ")
    monkeypatch.setenv("BATON_MONGO_URL", "")
    monkeypatch.setenv("BATON_LOG_LEVEL", "debug")
    env = read_environment()
    assert env.types_off == {"content.article", "order.sync"}
    assert env.allowed_hosts == ("a.example", "b.example")
    assert env.redis_url is None
    assert env.effective_broker_url == "redis://127.0.0.1:6379/0"
    assert env.mongo_url == "mongodb://127.0.0.1:27017/?replicaSet=rs0"
    assert env.log_level == "DEBUG"


def test_the_broker_is_the_hints_redis_unless_it_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BATON_REDIS_URL", "redis://one/1")
    monkeypatch.delenv("BATON_BROKER_URL", raising=False)
    assert read_environment().effective_broker_url == "redis://one/1"
    monkeypatch.setenv("BATON_BROKER_URL", "amqp://two//")
    assert read_environment().effective_broker_url == "amqp://two//"


def test_database_urls_are_understood(tmp_path: Path) -> None:
    default = business_database(None, data_dir=tmp_path)
    assert default["NAME"] == str(tmp_path / "business.sqlite3")
    absolute = business_database("sqlite:////srv/b.sqlite3", data_dir=tmp_path)
    assert absolute["NAME"] == "/srv/b.sqlite3"
    url = "postgresql://ann:p%40ss@db.example:5433/baton?sslmode=require"
    postgres = business_database(url, data_dir=tmp_path)
    assert postgres["ENGINE"] == "django.db.backends.postgresql"
    assert (postgres["USER"], postgres["PASSWORD"]) == ("ann", "p@ss")
    assert (postgres["HOST"], postgres["PORT"], postgres["NAME"]) == (
        "db.example",
        "5433",
        "baton",
    )
    assert postgres["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/x", "postgres://host"])
def test_a_database_url_without_a_database_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="BATON_DATABASE_URL"):
        business_database(url, data_dir=tmp_path)


def test_sqlite_is_durable_and_lets_writers_wait(transactional_db: None) -> None:
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        facts = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    assert facts["journal_mode"] == "wal"
    assert facts["synchronous"] == 2
    assert facts["busy_timeout"] >= 5000
    assert facts["foreign_keys"] == 1


def test_processes_that_start_together_agree_on_one_secret_key(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(load_or_create_secret_key(tmp_path / "data")))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1
    assert len(found[0]) >= 50
    kept = list((tmp_path / "data").iterdir())
    assert [path.name for path in kept] == ["secret_key"]
    assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "slots"),
    [("", 1), ("16", 16), ("media=16, content=4", {"media": 16, "content": 4})],
)
def test_slots_are_one_number_or_one_by_queue(
    monkeypatch: pytest.MonkeyPatch, text: str, slots: object
) -> None:
    monkeypatch.setenv("BATON_SLOTS_PER_CHILD", text)
    assert read_environment().slots_per_child == slots
