"""Scripts: found in lua/, sent by their short name, sent whole only when Redis lost them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import redis
from redis.exceptions import ResponseError

from kernel.hints.scripts import Scripts, load_scripts


def test_every_file_of_the_folder_is_a_script() -> None:
    assert set(load_scripts()) == {
        "depth",
        "is_next",
        "note_claims",
        "oldest_due",
        "peek_due",
        "pop",
        "push",
        "put_earliest",
        "put_latest",
        "remove_if_score",
    }


def test_a_folder_without_scripts_is_an_incomplete_installation(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="incomplete"):
        load_scripts(tmp_path)


def test_scripts_go_by_the_name_redis_gives_them(client: redis.Redis) -> None:
    for script in load_scripts().values():
        assert client.script_load(script.source) == script.sha
        assert hashlib.sha1(script.source.encode(), usedforsecurity=False).hexdigest() == script.sha


def test_a_script_unknown_to_redis_is_loaded_by_its_first_call(
    client: redis.Redis, key_prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "count.lua").write_text("return redis.call('INCR', KEYS[1])")
    scripts = load_scripts(tmp_path)
    key = f"{key_prefix}:count"
    client.script_flush()
    runner = Scripts(client, scripts)
    assert [runner.run("count", keys=(key,), args=()) for _ in range(2)] == [1, 2]
    assert client.script_exists(scripts["count"].sha) == [True]


def test_an_error_of_the_script_is_not_taken_for_a_missing_one(
    client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "refuse.lua").write_text("return redis.error_reply('ERR refused')")
    runner = Scripts(client, load_scripts(tmp_path))
    for _ in range(2):
        with pytest.raises(ResponseError, match="refused"):
            runner.run("refuse", keys=(), args=())
