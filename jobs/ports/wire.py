"""An HTTP client whose every byte stays inside the bounds of its call.

httpx limits each single read, so a server that sends one byte a second can hold a caller for ever.
Here the limits sit below HTTP, in the socket: name look-up, connect, TLS, each read and write look
at the same wall clock and stop sign.

Guarantees: a call ends within `LOOK_UP_EVERY` of its end or of the stop sign (a connection attempt:
within its own limit). The connection goes to an address the caller's `vet` approved, chosen in the
same look-up, so a name cannot change its meaning in between; Host and TLS still see the name.
Environment proxies are not used, `SSL_CERT_FILE` is. Leaves to others: which addresses are fit
(`vet`), redirects, and naming the failures (`OutOfTime`, `DnsFailed`, `httpcore` and `ssl` errors
come out as they are).
"""

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence

import httpcore
import httpx

from jobs.ports.bounds import LOOK_UP_EVERY, Bounds, within

#: Turn a host name and port into addresses (text form), best first; may raise `socket.gaierror`.
Resolver = Callable[[str, int], Sequence[str]]
#: Raise the caller's own error when one of these addresses must not be connected to.
Vet = Callable[[str, Sequence[str]], None]

#: Seconds one address may take to accept before the next one is tried.
CONNECT_LIMIT = 5.0

_SocketOptions = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


class DnsFailed(Exception):
    """A host name led to no address; `permanent` tells a missing name from a silent server."""

    def __init__(self, host: str, *, permanent: bool) -> None:
        super().__init__(host)
        self.host = host
        self.permanent = permanent


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the operating system, keeping its order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def bounded_client(
    bounds: Bounds,
    *,
    headers: dict[str, str],
    vet: Vet | None = None,
    resolver: Resolver = system_resolver,
) -> httpx.Client:
    """Open a client for one call; use it as a context manager. It follows no redirects itself."""
    transport = _BoundedTransport(_BoundedBackend(bounds, vet, resolver))
    return httpx.Client(transport=transport, headers=headers, trust_env=False)


class _BoundedTransport(httpx.BaseTransport):
    """Carry httpx requests over a pool whose sockets know the bounds."""

    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(), network_backend=backend
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and hand the open response on; errors are httpcore's."""
        assert isinstance(request.stream, httpx.SyncByteStream)
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method, url, headers=request.headers.raw, content=request.stream
            )
        )
        assert isinstance(answer.stream, Iterable)
        stream = _Body(answer)
        return httpx.Response(answer.status, headers=answer.headers, stream=stream)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body as it arrives."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        """Give the connection up."""
        self._answer.close()


class _BoundedBackend(httpcore.NetworkBackend):
    """Resolve once, vet all, connect to what was vetted."""

    def __init__(self, bounds: Bounds, vet: Vet | None, resolver: Resolver) -> None:
        self._bounds = bounds
        self._vet = vet
        self._resolver = resolver
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _SocketOptions | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that accepts."""
        del timeout  # the bounds decide, here and below
        addresses = self._resolve(host, port)
        if self._vet is not None:
            self._vet(host, addresses)
        failure: Exception | None = None
        for address in addresses:
            limit = min(CONNECT_LIMIT, self._bounds.remaining())
            try:
                stream = self._sockets.connect_tcp(
                    address, port, limit, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
            else:
                return _BoundedStream(stream, self._bounds)
        self._bounds.check()
        raise httpcore.ConnectError(str(failure))

    def _resolve(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = within(self._bounds, lambda: self._resolver(host, port))
        except socket.gaierror as exc:
            raise DnsFailed(host, permanent=exc.errno == socket.EAI_NONAME) from exc
        except UnicodeError as exc:
            raise DnsFailed(host, permanent=True) from exc
        if not addresses:
            raise DnsFailed(host, permanent=True)
        return addresses


class _BoundedStream(httpcore.NetworkStream):
    """A connection that looks at its bounds while it waits."""

    def __init__(self, stream: httpcore.NetworkStream, bounds: Bounds) -> None:
        self._stream = stream
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Wait for bytes in short turns."""
        del timeout
        while True:
            turn = min(LOOK_UP_EVERY, self._bounds.remaining())
            try:
                return self._stream.read(max_bytes, turn)
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all; requests are small, so one limit for the whole is enough."""
        del timeout
        self._stream.write(buffer, self._bounds.remaining())

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Shake hands, for the name and not for the address connected to."""
        del timeout
        limit = min(CONNECT_LIMIT, self._bounds.remaining())
        stream = self._stream.start_tls(ssl_context, server_hostname, limit)
        return _BoundedStream(stream, self._bounds)

    def get_extra_info(self, info: str) -> object:
        """Pass the question on."""
        return self._stream.get_extra_info(info)
