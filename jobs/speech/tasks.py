"""The speech service's tasks, in a SQLite file that outlives the process.

```
queued ─take─▶ running ─finish─▶ succeeded | failed ─TTL─▶ forgotten
   ▲──────────────┘ the process ended meanwhile
```

Guarantees: a task that was accepted is never lost by a restart; of one idempotency key there is one
task; an end is written once. Leaves to others: recognising, HTTP.
"""

import secrets
import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from jobs.ports.speech import SpeechState

#: Seconds for which an ended task is remembered.
TASK_TTL_SECONDS = 86_400.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, idempotency_key TEXT UNIQUE, digest TEXT NOT NULL, state TEXT NOT NULL,
    samples BLOB, text TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
    callback_url TEXT, created_at REAL NOT NULL, finished_at REAL
);
CREATE INDEX IF NOT EXISTS tasks_waiting ON tasks (state, created_at);
"""


class KeyReused(Exception):
    """The idempotency key was used for another recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A stored task, without its samples."""

    id: str
    state: SpeechState
    text: str
    reason: str
    callback_url: str | None


class TaskStore:
    """The tasks of one data folder; safe to share between threads."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._base = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.executescript(_SCHEMA)
        # Whoever worked on these has died.
        self._base.execute("UPDATE tasks SET state = 'queued' WHERE state = 'running'")

    def add(
        self, *, key: str | None, digest: str, samples: bytes, callback_url: str | None
    ) -> tuple[Task, bool]:
        """Accept a recording; the second value is False when the key's task existed.

        Raises: KeyReused.
        """
        with self._lock:
            self._base.execute(
                "INSERT INTO tasks (id, idempotency_key, digest, state, samples, callback_url,"
                " created_at) VALUES (?, ?, ?, 'queued', ?, ?, ?)"
                " ON CONFLICT (idempotency_key) DO NOTHING",
                (new := f"speech_{secrets.token_hex(12)}", key, digest, samples, callback_url,
                 time.time()),
            )  # fmt: skip
            row = self._base.execute(
                "SELECT id, digest FROM tasks WHERE id = ? OR idempotency_key = ?", (new, key)
            ).fetchone()
        if row[1] != digest:
            raise KeyReused
        task = self.get(row[0])
        assert task is not None, "a task is forgotten long after it was added"
        return task, task.id == new

    def get(self, task_id: str) -> Task | None:
        """Read a task; None when it is unknown or forgotten."""
        with self._lock:
            row = self._base.execute(
                "SELECT id, state, text, reason, callback_url FROM tasks WHERE id = ?", (task_id,)
            ).fetchone()
        if row is None:
            return None
        return Task(
            id=row[0], state=SpeechState(row[1]), text=row[2], reason=row[3], callback_url=row[4]
        )

    def take(self) -> tuple[str, bytes] | None:
        """Put the oldest queued task to running and return its id and samples."""
        with self._lock:
            row = self._base.execute(
                "UPDATE tasks SET state = 'running' WHERE id = (SELECT id FROM tasks"
                " WHERE state = 'queued' ORDER BY created_at LIMIT 1) RETURNING id, samples"
            ).fetchone()
        return None if row is None else (row[0], row[1])

    def finish(self, task_id: str, *, text: str = "", reason: str = "") -> Task | None:
        """Write a running task's end, `failed` when there is a reason; None: it is not running."""
        state = SpeechState.FAILED if reason else SpeechState.SUCCEEDED
        with self._lock:
            done = self._base.execute(
                "UPDATE tasks SET state = ?, text = ?, reason = ?, samples = NULL, finished_at = ?"
                " WHERE id = ? AND state = 'running'",
                (state.value, text, reason, time.time(), task_id),
            )
        return self.get(task_id) if done.rowcount else None

    def lose(self, task_id: str) -> bool:
        """Forget a task, whatever it is doing; tells whether it was known."""
        with self._lock:
            gone = self._base.execute("DELETE FROM tasks WHERE id = ?", (task_id,))
        return bool(gone.rowcount)

    def forget_old(self) -> None:
        """Forget what ended longer ago than the TTL. On repeat: nothing."""
        with self._lock:
            self._base.execute(
                "DELETE FROM tasks WHERE finished_at < ?", (time.time() - TASK_TTL_SECONDS,)
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()
