"""Messages nobody should have sent, each of them once seen to end or to block a consumer."""

import base64
import json
import pickle
from typing import Any


def message(task: str = "baton.wake", arguments: tuple[Any, ...] = ("content",)) -> dict[str, Any]:
    """A well-formed task message, as the broker keeps it."""
    body = [list(arguments), {}, {"callbacks": None, "errbacks": None, "chain": None}]
    return {
        "body": _packed(json.dumps(body).encode()),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": task,
            "id": "0000",
            "retries": 0,
            "eta": None,
            "expires": None,
            "timelimit": [None, None],
            "root_id": "0000",
            "argsrepr": "",
            "kwargsrepr": "",
            "origin": "tests",
        },
        "properties": {
            "correlation_id": "0000",
            "reply_to": "",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "content"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "0000",
        },
    }


def garbage() -> list[bytes]:
    """Every kind of bad message, as raw list items; tags and ids are unique where they exist."""
    raw: list[bytes] = [
        b"hello",
        b"\xff\xfe\x00",
        b"",
        b"42",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"properties": {}}',
        b'{"properties": null}',
        b"[" * 100_000,
    ]
    for index, bad in enumerate(_structured()):
        text = json.dumps(bad).replace('"0000"', f'"garbage-{index}"')
        raw.append(text.encode())
    return raw


def _structured() -> list[dict[str, Any]]:
    found = [message("no.such.task"), message(arguments=("no-such-queue",))]
    odd_arguments: list[tuple[Any, ...]] = [(), (5,), (None,), ({"a": []}, 1, 2)]
    found += [message(arguments=arguments) for arguments in odd_arguments]
    odd: list[Any] = [5, "x", [1], {"a": 1}]
    for body in ("!!!", "a", 5, None, ""):
        found.append({**message(), "body": body})
    pickled = _packed(pickle.dumps([["content"], {}, {}]))
    found.append({**message(), "content-type": "application/x-python-serialize", "body": pickled})
    found += [{**message(), "content-type": kind} for kind in (None, "text/plain", 5)]
    found += [{**message(), "content-encoding": kind} for kind in (None, "nope", 5)]
    found += [{**message(), "headers": headers} for headers in [*odd, None, [], {}]]
    for name in ("task", "id", "expires", "eta", "timelimit", "retries", "compression", "chain",
                 "chord", "group", "stamps", "shadow"):  # fmt: skip
        for value in odd:
            bad = message()
            bad["headers"][name] = value
            found.append(bad)
    for name in ("delivery_tag", "delivery_info", "body_encoding", "priority", "reply_to"):
        for value in [*odd, None]:
            bad = message()
            bad["properties"][name] = value
            found.append(bad)
    for raw in (b"not json", b"{}", b"5", b"[5,5,5]", b'[[],{},{"callbacks":5}]', b"[" * 100_000,
                 b'[[],{"x":{}},{"errbacks":[7]}]', b'[[{"__type__":"uuid","__value__":7}],{},{}]',
                 b'[[{"__type__":"datetime","__value__":"x"}],{},{}]'):  # fmt: skip
        found.append({**message(), "body": _packed(raw)})
    return found


def _packed(body: bytes) -> str:
    return base64.b64encode(body).decode()
