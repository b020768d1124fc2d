"""The speech service over HTTP, in a process of its own.

```
POST /tasks          a WAV file; Idempotency-Key, Callback-Url   202 {id, state}; 400, 413, 415
GET  /tasks/<id>     200 {id, state, text, reason}; 404 when it is unknown or forgotten
GET  /health         200
with --faults only:  GET, PUT /faults;  DELETE /tasks/<id> loses a task
```

Guarantees: 202 is said after the task is stored; whatever a client sends is answered with JSON.
Leaves to others: tasks (`tasks`), recognising (`work`).
"""

import hashlib
import json
import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jobs.speech.faults import BadFault, Faults
from jobs.speech.tasks import KeyReused, Task, TaskStore
from jobs.speech.wav import UnreadableAudio, read_wav
from jobs.speech.work import Work

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 32 * 1024 * 1024
_KEY_CHARS = 255
_SOCKET_SECONDS = 30.0


class SpeechServer(ThreadingHTTPServer):
    """Listens; hands what it accepts to the work."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], *, tasks: TaskStore, work: Work, faults: Faults | None
    ) -> None:
        self.tasks = tasks
        self.work = work
        #: None when faults cannot be switched.
        self.faults = faults
        super().__init__(address, _Handler)


class _Refused(Exception):
    """An answer other than success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: SpeechServer
    timeout = _SOCKET_SECONDS
    server_version = "baton-speech"
    sys_version = ""

    def log_message(self, *_: object) -> None:
        """Keep the terminal for what matters."""

    def do_GET(self) -> None:
        """Answer a question."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Accept a recording."""
        self._answer(self._post)

    def do_PUT(self) -> None:
        """Switch faults."""
        self._answer(self._put)

    def do_DELETE(self) -> None:
        """Lose a task, where faults may be switched."""
        self._answer(self._delete)

    def _get(self) -> tuple[int, dict[str, Any]]:
        if self.path == "/health":
            return 200, {"status": "ok"}
        if self.path == "/faults":
            return 200, self._faults().report()
        task_id = self._task_id()
        self._go_wrong_if_told(f"query {task_id}")
        task = self.server.tasks.get(task_id)
        if task is None:
            raise _Refused(404, "There is no such task, or it was forgotten.")
        return 200, _described(task)

    def _post(self) -> tuple[int, dict[str, Any]]:
        if self.path != "/tasks":
            raise _Refused(404, "Recordings are posted to /tasks.")
        body = self._body()
        key = self.headers.get("Idempotency-Key")
        if key is not None and not 0 < len(key) <= _KEY_CHARS:
            raise _Refused(400, f"An Idempotency-Key has 1 to {_KEY_CHARS} characters.")
        callback = self.headers.get("Callback-Url")
        if callback is not None and not callback.startswith(("http://", "https://")):
            raise _Refused(400, "Callback-Url must be an http or https address.")
        self._go_wrong_if_told("submit")
        if self.server.faults is not None and self.server.faults.forget_keys:
            key = None
        try:
            task, is_new = self.server.tasks.add(
                key=key,
                digest=hashlib.sha256(body).hexdigest(),
                samples=read_wav(body),
                callback_url=callback,
            )
        except UnreadableAudio as error:
            raise _Refused(415, str(error)) from error
        except KeyReused:
            raise _Refused(400, "This Idempotency-Key was used for another recording.") from None
        if is_new:
            self.server.work.look()
        elif self.server.faults is not None:
            self.server.faults.count("repeated submit")
        return 202, _described(task)

    def _put(self) -> tuple[int, dict[str, Any]]:
        faults = self._faults()
        if self.path != "/faults":
            raise _Refused(404, "Only /faults can be put.")
        try:
            wanted = json.loads(self._body())
            faults.switch(dict(wanted))
        except (ValueError, TypeError, BadFault) as error:
            raise _Refused(400, f"Not understood: {error}.") from error
        return 200, faults.report()

    def _delete(self) -> tuple[int, dict[str, Any]]:
        self._faults()
        return 200, {"lost": self.server.tasks.lose(self._task_id())}

    def _go_wrong_if_told(self, what: str) -> None:
        if (faults := self.server.faults) is not None:
            faults.count(what)
            if faults.fails_now():
                raise _Refused(500, "This call was told to fail.")

    def _faults(self) -> Faults:
        if self.server.faults is None:
            raise _Refused(404, "Faults are switched in a process started with --faults only.")
        return self.server.faults

    def _task_id(self) -> str:
        prefix, _, task_id = self.path.rpartition("/")
        if prefix != "/tasks" or not task_id:
            raise _Refused(404, "There is nothing here.")
        return task_id

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise _Refused(411, "Say Content-Length.")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise _Refused(413, f"At most {MAX_BODY_BYTES} bytes are taken.")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise _Refused(400, "The body ended early.")
        return body

    def _answer(self, call: Any) -> None:
        try:
            status, body = call()
        except _Refused as refusal:
            status, body = refusal.status, {"error": {"message": str(refusal)}}
        except OSError:
            # The client went away, or was silent for too long.
            self.close_connection = True
            return
        except Exception:
            log.exception("a call could not be answered")
            status, body = 500, {"error": {"message": "The service failed; its log says why."}}
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True


def _described(task: Task) -> dict[str, Any]:
    return {"id": task.id, "state": task.state, "text": task.text, "reason": task.reason}
