"""Over TLS the name is proved, the address is the vetted one, and the bounds still hold.

`certificates/site_example.pem` is a key and a self-signed certificate for site.example, made for
these tests and trusted by nobody.
"""

import ssl
from pathlib import Path

import pytest

from jobs.fetching import PageFetcher
from jobs.ports.errors import FetchFailedForNow, FetchRefused
from tests.ports.outside import PROSE, Visit, article, outside, resolving_to

CERTIFICATE = Path(__file__).parent / "certificates" / "site_example.pem"
LOCAL = PageFetcher(allow_private=True, resolver=resolving_to("127.0.0.1"))


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


def in_two_parts(visit: Visit) -> None:
    """Pause longer than the client waits in one turn."""
    body = article(PROSE).encode()
    visit.begin(Content_Length=str(len(body)))
    visit.wfile.write(body[:50])
    visit.outside.closing.wait(0.5)
    visit.wfile.write(body[50:])


@pytest.mark.usefixtures("trusted")
def test_certificate_is_checked_against_the_name_while_connected_to_the_address(
    tls: ssl.SSLContext,
) -> None:
    with outside({"/": in_two_parts}, tls=tls) as world:
        page = LOCAL.fetch(f"https://site.example:{world.port}/")
    assert PROSE in page.text


@pytest.mark.usefixtures("trusted")
def test_certificate_of_another_name_is_refused(tls: ssl.SSLContext) -> None:
    with outside({}, tls=tls) as world, pytest.raises(FetchRefused) as caught:
        LOCAL.fetch(f"https://other.example:{world.port}/")
    assert caught.value.code == "bad_certificate"
    assert world.visits == []


def test_certificate_nobody_vouches_for_is_refused(tls: ssl.SSLContext) -> None:
    with outside({}, tls=tls) as world, pytest.raises(FetchRefused) as caught:
        LOCAL.fetch(f"https://site.example:{world.port}/")
    assert caught.value.code == "bad_certificate"


def mute(visit: Visit) -> None:
    visit.outside.closing.wait(30)


@pytest.mark.usefixtures("trusted")
def test_wall_clock_holds_over_tls(tls: ssl.SSLContext) -> None:
    fetcher = PageFetcher(allow_private=True, resolver=resolving_to("127.0.0.1"), timeout=0.6)
    with outside({"/": mute}, tls=tls) as world, pytest.raises(FetchFailedForNow) as caught:
        fetcher.fetch(f"https://site.example:{world.port}/")
    assert caught.value.code == "timeout"


def test_plain_http_behind_an_https_address_may_be_retried() -> None:
    with outside({}) as world, pytest.raises(FetchFailedForNow) as caught:
        LOCAL.fetch(f"https://site.example:{world.port}/")
    assert caught.value.code == "connection_failed"
