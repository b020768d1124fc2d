"""``manage.py speech_service``: run the speech recognition service in this terminal.

Guarantees: SIGTERM and Ctrl-C end it between two chunks; accepted tasks are in the data folder and
are taken up again by the next start. Leaves to others: everything the service does (`jobs.speech`).
"""

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.management import arguments
from jobs.speech.faults import Faults
from jobs.speech.server import SpeechServer
from jobs.speech.tasks import TaskStore
from jobs.speech.work import Work

PORT = 8090


class Command(BaseCommand):
    help = "Run the speech recognition service (PocketSphinx behind HTTP submit and poll)."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument(
            "--port", type=arguments.port, default=PORT, help="port, 0 for a free one"
        )
        parser.add_argument("--folder", type=Path, help="where tasks are kept")
        parser.add_argument(
            "--faults", action="store_true", help="let clients switch faults; tests only"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        folder: Path = options["folder"] or settings.BATON_DATA_DIR / "speech"
        folder.mkdir(parents=True, exist_ok=True)
        faults = Faults() if options["faults"] else None
        tasks = TaskStore(folder / "tasks.sqlite3")
        work = Work(tasks, faults)
        try:
            server = SpeechServer(
                (options["host"], options["port"]), tasks=tasks, work=work, faults=faults
            )
        except OSError as error:
            tasks.close()
            raise CommandError(f"cannot listen on port {options['port']}: {error}") from error

        def end(_number: int, _frame: FrameType | None) -> None:
            # serve_forever runs in this thread, so the request to end comes from another.
            threading.Thread(target=server.shutdown, daemon=True).start()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        work.start()
        self.stdout.write(
            f"speech service listens on http://{options['host']}:{server.server_port}"
        )
        self.stdout.flush()
        server.serve_forever(0.1)
        server.server_close()
        work.stop()
        tasks.close()
        self.stdout.write("speech service has stopped")
