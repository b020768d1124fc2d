"""Start, watch and end one server process that owns one data folder.

```
start(): lock folder ─▶ refuse if its server lives ─▶ [choose port ─▶ spawn ─▶ await its answer]
                                                        └── port lost to somebody else: again
```

Guarantees: see the package. A caller that loses its handle can still find the server through the
pid file. `start` must be called from a thread that lives as long as the server shall, because the
parent-death signal follows the thread that forked.
Leaves flags, readiness and URLs to the subclasses.
"""

import contextlib
import ctypes
import ctypes.util
import fcntl
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Self

from config.embedded import pidfile, ports
from config.embedded.errors import AlreadyRunning, PortTaken, StartFailed

_PORT_ATTEMPTS = 5
_PR_SET_PDEATHSIG = 1
_LOG_TAIL_BYTES = 2000


class ServerProcess(ABC):
    """A server bound to 127.0.0.1 with its data under `data_dir`; also a context manager."""

    #: What people call the server.
    name: ClassVar[str]
    #: How long a start may take, in seconds, recovery of the data included.
    start_timeout: ClassVar[float] = 60.0

    def __init__(self, data_dir: Path, port: int | None = None) -> None:
        self.data_dir = Path(data_dir)
        self._wanted_port = port
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """The TCP port in use. Raises: StartFailed, when the server was never started."""
        if self._port is None:
            raise StartFailed(f"{self.name} has no port yet: call start() first")
        return self._port

    @property
    def pid(self) -> int:
        """The server's process id. Raises: StartFailed, when it does not run."""
        if self._process is None:
            raise StartFailed(f"{self.name} is not running: call start() first")
        return self._process.pid

    @property
    def log_file(self) -> Path:
        """Where the server writes what it has to say."""
        return self.data_dir / f"{self.name}.log"

    @property
    @abstractmethod
    def url(self) -> str:
        """The address to hand to clients."""

    def is_alive(self) -> bool:
        """Say whether the process started here still runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and return when it answers.

        Raises: AlreadyRunning, PortTaken (only for a port given by the caller), StartFailed,
        PlatformNotServed. On repeat: AlreadyRunning while it runs. On crash: the next start finds
        a stale pid file and goes on.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self._folder_lock():
            self._refuse_second()
            for _ in range(_PORT_ATTEMPTS):
                self._port = self._choose_port()
                if self._spawn_and_wait():
                    self._port_file.write_text(str(self._port), encoding="ascii")
                    return
                if self._wanted_port is not None:
                    raise PortTaken(self._port_taken_message())
            raise StartFailed(f"{self.name} lost {_PORT_ATTEMPTS} ports in a row to other programs")

    def stop(self, timeout: float = 30.0) -> None:
        """End the server cleanly; after `timeout` seconds, kill it. On repeat: nothing."""
        self._end(signal.SIGTERM, timeout)

    def kill(self) -> None:
        """End the server at once, as a crash would. On repeat: nothing."""
        self._end(signal.SIGKILL, 10.0)

    def __enter__(self) -> Self:
        """Start, and stop when the block ends."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def _command(self, port: int) -> Sequence[str]:
        """Return the command line that serves the data folder on `port`."""

    @abstractmethod
    def _answers(self, pid: int) -> bool:
        """Say whether the process `pid`, and no other program, answers on our port."""

    def _prepare(self) -> None:  # noqa: B027 - most servers need nothing
        """Make the answering server usable; called once a start."""

    @property
    def _port_file(self) -> Path:
        return self.data_dir / f"{self.name}.port"

    @property
    def _pid_file(self) -> Path:
        return self.data_dir / f"{self.name}.pid"

    @property
    def _console_file(self) -> Path:
        return self.data_dir / f"{self.name}.console"

    @contextlib.contextmanager
    def _folder_lock(self) -> Iterator[None]:
        lock = self.data_dir / f"{self.name}.lock"
        with lock.open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _refuse_second(self) -> None:
        owner = pidfile.read(self._pid_file)
        if owner is not None and owner.is_alive():
            raise AlreadyRunning(
                f"{self.name} already runs on {self.data_dir} as process {owner.pid}: stop the "
                f"stack that started it (or `kill {owner.pid}` if nobody owns it), or choose "
                "another folder with BATON_DATA_DIR."
            )
        pidfile.remove(self._pid_file)

    def _choose_port(self) -> int:
        if self._wanted_port is not None:
            if not ports.is_free(self._wanted_port):
                raise PortTaken(self._port_taken_message())
            return self._wanted_port
        last = ports.remembered_port(self._port_file)
        return last if last is not None and ports.is_free(last) else ports.free_port()

    def _port_taken_message(self) -> str:
        return (
            f"port {self._wanted_port} on {ports.HOST} is taken by another program: "
            f"choose another one for {self.name}, or none to take any free port."
        )

    def _spawn_and_wait(self) -> bool:
        """Start one process; False means that another program has the port."""
        with self._console_file.open("wb") as console:
            self._process = subprocess.Popen(
                list(self._command(self.port)),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=self.data_dir,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        pidfile.write(self._pid_file, pidfile.ProcessId.of(self._process.pid))
        try:
            if not self._wait_for_answer(self._process):
                self._forget()
                return False
            self._prepare()
        except BaseException:
            self.kill()
            raise
        return True

    def _wait_for_answer(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + self.start_timeout
        while time.monotonic() < deadline:
            if process.poll() is not None:
                if not ports.is_free(self.port):
                    return False
                raise StartFailed(self._ended_message(process.returncode))
            if self._answers(process.pid):
                return True
            time.sleep(0.02)
        raise StartFailed(
            f"{self.name} did not answer on port {self.port} within {self.start_timeout:.0f} s. "
            f"Its log: {self.log_file}\n{self._log_tail()}"
        )

    def _ended_message(self, returncode: int) -> str:
        return (
            f"{self.name} ended with status {returncode} while starting on {self.data_dir}. If a "
            f"library is missing here, use a server of your own instead (BATON_{self.name_in_env}"
            f"_URL). It said:\n{self._log_tail()}"
        )

    @property
    def name_in_env(self) -> str:
        """The word for this kind of server in the environment variables' names."""
        return {"mongod": "MONGO"}.get(self.name, "REDIS")

    def _log_tail(self) -> str:
        parts = []
        for file in (self._console_file, self.log_file):
            with contextlib.suppress(OSError):
                parts.append(file.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace"))
        return "\n".join(part for part in parts if part)

    def _end(self, how: signal.Signals, timeout: float) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10.0)
        self._forget()

    def _forget(self) -> None:
        self._process = None
        pidfile.remove(self._pid_file)


def die_with_parent(how: signal.Signals = signal.SIGTERM) -> Callable[[], None] | None:
    """Return a `preexec_fn` that makes the child receive `how` when its parent ends.

    Linux only: None elsewhere, where a hard-killed parent leaves its servers behind and the next
    start names them.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    parent = os.getpid()

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(how), 0, 0, 0)
        # The parent may have died before the line above; then nobody would ever send the signal.
        if os.getppid() != parent:
            os._exit(1)

    return before_exec
