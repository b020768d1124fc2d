"""Choose a TCP port on 127.0.0.1 and remember it inside a server's data folder.

Guarantees a candidate that was free a moment ago. Leaves the race between choosing and binding to
the caller, who starts again with another port.
"""

import socket
from pathlib import Path

#: Where the servers of the dev stack listen; never an outside address.
HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Say whether a server could bind `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a port nobody listens on at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def remembered_port(file: Path) -> int | None:
    """Return the port this data folder used last, or None when unknown or unreadable."""
    try:
        port = int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return port if 0 < port < 65536 else None
