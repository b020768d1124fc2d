"""Keep a fetch on the public web: the address rules a URL must pass before and while connecting.

Authority: `check_url` decides about everything a URL shows (scheme, userinfo, port, host form);
`vet` decides about the addresses its host turned out to have, all of them, inside the very look-up
the connection is made from. A redirect's target passes both again.

Guarantees: refused means nothing was sent. Leaves to others: following redirects one at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

import httpx

from jobs.fetching.addresses import as_ipv4, refusal
from jobs.ports.errors import FetchRefused

MAX_URL_CHARS = 2048
_MAX_HOST_CHARS = 253
_MAX_LABEL_CHARS = 63

#: Names that mean this machine or this network wherever they are asked.
_LOCAL_NAMES = ("localhost", "localdomain", "local", "internal", "intranet", "home.arpa", "lan")
_LOOPBACK_NAMES = ("localhost",)

#: Below 1024 only the web's own; above it, none of the services browsers or operators keep shut.
_WEB_PORTS = frozenset({80, 443})
_SERVICE_PORTS = frozenset(
    {1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190}
    | {5060, 5061, 5432, 5671, 5672, 5900, 5984, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668}
    | {6669, 6697, 9042, 9092, 9200, 9300, 10080, 10250, 11211, 26379, 27017, 27018, 27019}
)
_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The rules of one fetcher."""

    #: Also allow loopback and private networks; for demos and intranets, by explicit setting.
    allow_private: bool = False

    def check_url(self, url: str) -> httpx.URL:
        """Parse `url` and refuse what its text alone forbids; gives it back without fragment.

        Raises: FetchRefused, code bad_url (not a usable web address) or ssrf_refused.
        """
        parsed = _parse(url)
        if parsed.scheme not in ("http", "https"):
            raise _refused(parsed, f"only http and https are fetched, not {parsed.scheme!r}")
        if parsed.userinfo:
            raise _refused(parsed, "it carries a user name or password")
        host = parsed.raw_host.decode("ascii").lower()
        if not host:
            raise _bad(url, "it names no host")
        self._check_port(parsed)
        return self._check_host(parsed, host)

    def _check_port(self, url: httpx.URL) -> None:
        port = url.port
        if port is None or port in _WEB_PORTS:
            return
        if port < 1024 or port in _SERVICE_PORTS:
            raise _refused(url, f"port {port} is not one web pages are served from")

    def _check_host(self, url: httpx.URL, host: str) -> httpx.URL:
        if ":" in host:
            try:
                address = str(IPv6Address(host))
            except AddressValueError as exc:
                raise _bad(str(url), "its host is no valid IPv6 address") from exc
            self.vet(host, [address])
            return url
        if not _HOST_CHARACTERS.issuperset(host):
            raise _bad(str(url), f"{host!r} is no valid host name")
        try:
            number = as_ipv4(host)
        except ValueError as exc:
            raise _bad(str(url), str(exc)) from exc
        if number is not None:
            self.vet(host, [str(number)])
            # The canonical form goes on, so nobody reads the odd one in another way later.
            return url.copy_with(host=str(number))
        self._check_name(url, host.removesuffix("."))
        return url

    def _check_name(self, url: httpx.URL, name: str) -> None:
        labels = name.split(".")
        if len(name) > _MAX_HOST_CHARS or any(not 0 < len(x) <= _MAX_LABEL_CHARS for x in labels):
            raise _bad(str(url), f"{name[:80]!r} is no valid host name")
        if self.allow_private:
            return
        if any(name == local or name.endswith(f".{local}") for local in _LOCAL_NAMES):
            raise _refused(url, f"{name!r} is a name of this machine or its own network")
        if len(labels) == 1:
            raise _refused(url, f"{name!r} is a name without a domain, known only inside a network")

    def vet(self, host: str, addresses: Sequence[str]) -> None:
        """Refuse a host if any of its addresses is unfit: an attacker may mix them.

        Raises: FetchRefused, code ssrf_refused, naming the address and the reason.
        """
        for address in addresses:
            reason = refusal(address, allow_private=self.allow_private)
            if reason is not None:
                shown = address if address == host else f"{host} ({address})"
                raise FetchRefused(
                    f"Refused to fetch from {shown}: it is {reason}.", code="ssrf_refused"
                )


def _parse(url: str) -> httpx.URL:
    text = url.strip(" \t\r\n\f")
    if not text or len(text) > MAX_URL_CHARS:
        raise _bad(url, f"an address has 1 to {MAX_URL_CHARS} characters")
    if "\\" in text:
        raise _bad(url, "a backslash is read in different ways by different programs")
    try:
        parsed = httpx.URL(text)
        port = parsed.port
    except (httpx.InvalidURL, ValueError) as exc:
        raise _bad(url, str(exc)) from exc
    if not parsed.scheme:
        raise _bad(url, "it must start with http:// or https://")
    if port is not None and not 0 < port < 65536:
        raise _bad(url, f"{port} is no port number")
    return parsed.copy_with(fragment=None)


def _bad(url: str, why: str) -> FetchRefused:
    return FetchRefused(f"{_shown(url)} is not a usable web address: {why}.", code="bad_url")


def _refused(url: httpx.URL, why: str) -> FetchRefused:
    # The host only: userinfo and query may be secrets.
    return FetchRefused(f"Refused to fetch {url.scheme}://{url.host}: {why}.", code="ssrf_refused")


def _shown(url: str) -> str:
    """Quote the start of a URL without its query and userinfo, for a message."""
    text = url.partition("?")[0]
    scheme, separator, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    return repr((scheme + separator + authority.rpartition("@")[2] + slash + path)[:120])
