"""The API under a real uvicorn on a local port, on the test's own database.

Guarantees: the server is ended with the test, whatever happens. Leaves callers and their tokens to
the fixtures of this folder.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
from django.db import connection

from tests.kit.processes import Child, python


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running web process."""

    url: str
    child: Child
    #: Lines it had written before the test began that uses it.
    lines_before: int = 0

    @property
    def said(self) -> str:
        """What the process has written since the test began."""
        return "\n".join(self.child.lines[self.lines_before :])

    def client(self, token: str, **options: Any) -> httpx.Client:
        """Return an HTTP client with a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **options)


@contextmanager
def running_server(env: Mapping[str, str]) -> Iterator[Server]:
    """Serve the test's database until the block ends."""
    command = ("-m", "uvicorn", "config.asgi:application", "--port", "0", "--no-access-log")
    settings = {
        **env,
        "BATON_DATABASE_URL": database_url(),
        "BATON_LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    with python(*command, "--timeout-graceful-shutdown", "1", env=settings) as child:
        found = child.wait_for_line(r"running on (http://[0-9.:]+)", timeout=60)
        yield Server(url=found[1], child=child)


def database_url() -> str:
    """Name the database that this test's connection uses, for a child process."""
    values = connection.settings_dict
    name = str(values["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    user, password = quote(values["USER"], safe=""), quote(values["PASSWORD"], safe="")
    query = f"?host={quote(values['HOST'], safe='')}" if values["HOST"].startswith("/") else ""
    host = "" if query else f"{values['HOST']}:{values['PORT']}"
    return f"postgresql://{user}:{password}@{host}/{name}{query}"
