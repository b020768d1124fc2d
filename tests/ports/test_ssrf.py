"""A fetch stays on the public web, whatever the URL, the names and the redirects try."""

import socket
from collections.abc import Sequence

import pytest

from jobs.fetching import PageFetcher
from jobs.fetching.addresses import refusal
from jobs.ports.errors import FetchFailedForNow, FetchRefused
from tests.ports.outside import PROSE, Visit, article, outside, resolving_to


def refused(fetcher: PageFetcher, url: str) -> FetchRefused:
    with pytest.raises(FetchRefused) as caught:
        fetcher.fetch(url)
    return caught.value


def no_lookup(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host} was looked up")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.0.0.1:8000/x", "https://10.0.0.5/", "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data/", "http://0.0.0.0/", "http://0/",
        "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
        "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fd00::1]/",
        "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[::127.0.0.1]/",
        "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/",
        "http://127.0.0.1./", "http://127。0。0。1/",
        "http://localhost/", "http://LOCALHOST./", "http://db.localhost/", "http://redis/",
        "http://metadata.google.internal/", "http://printer.local/", "http://nas.home.arpa/",
        "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "data:text/html,x",
        "http://user@example.com/", "http://user:pw@example.com/", "http://:pw@example.com/",
        "http://example.com:22/", "http://example.com:25/", "http://example.com:6379/",
        "http://example.com:27017/", "https://example.com:1/",
    ],
)  # fmt: skip
def test_forbidden_url_is_refused_before_any_lookup(url: str) -> None:
    error = refused(PageFetcher(resolver=no_lookup), url)
    assert error.code == "ssrf_refused"
    assert str(error).startswith("Refused to fetch")
    assert "pw" not in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "", "   ", "example.com", "//example.com/", "http://", "http:///x", "http://exa mple.com/",
        "http://%6c%6fcalhost/", "http://①②⑦.⓪.⓪.①/", "http://example.com:0/",
        "http://example.com:99999/", "http://example.com:x/", "http://256.0.0.1/", "http://0177.0.0.1/",
        "http://127.0.0.1\\.example.com/", "http://example.com\\@127.0.0.1/", "http://a..b/",
        "http://[::1/", "http://[v1.x]/", "http://x\x00y/", "http://" + "a" * 64 + ".com/",
        "http://example.com/" + "a" * 2048, "http://ex\ud800.com/", "http://h.example/\ud800",
    ],
)  # fmt: skip
def test_unusable_url_is_named_as_such(url: str) -> None:
    error = refused(PageFetcher(resolver=no_lookup), url)
    assert error.code == "bad_url"
    assert "is not a usable web address" in str(error)


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["::1"], ["fe80::1%2"], ["169.254.169.254"], ["::ffff:10.0.0.1"]],
)
def test_name_that_resolves_to_an_unfit_address_is_refused(addresses: list[str]) -> None:
    error = refused(PageFetcher(resolver=resolving_to(*addresses)), "http://intranet.example/")
    assert error.code == "ssrf_refused"
    assert addresses[0] in str(error)


def test_one_unfit_address_among_public_ones_refuses_the_name() -> None:
    def mixed(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", "10.0.0.1"]

    assert refused(PageFetcher(resolver=mixed), "http://mixed.example/").code == "ssrf_refused"


def test_connection_goes_to_the_address_that_was_checked_and_shows_the_name() -> None:
    """A name that changes between check and use has no second moment to change in."""
    lookups: list[str] = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["169.254.169.254"]

    with outside({"/": lambda visit: visit.answer(article(PROSE).encode())}) as world:
        fetcher = PageFetcher(allow_private=True, resolver=rebinding)
        page = fetcher.fetch(f"http://site.example:{world.port}/")
    assert page.text
    assert lookups == ["site.example"]
    assert world.hosts == [f"site.example:{world.port}"]


def test_name_public_at_first_and_private_at_the_next_hop_is_refused() -> None:
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    def changing(host: str, port: int) -> Sequence[str]:
        return next(answers)

    def go_on(visit: Visit) -> None:
        visit.answer(status=302, Location=f"http://second.example:{visit.outside.port}/")

    with outside({"/": go_on}) as world:
        fetcher = PageFetcher(allow_private=True, resolver=changing)
        error = refused(fetcher, f"http://first.example:{world.port}/")
    assert error.code == "ssrf_refused"
    assert world.visits == ["/"]


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "file:///etc/passwd",
        "http://user:pw@example.com/",
        "http://example.com:6379/",
        "//169.254.169.254/",
    ],
)
def test_redirect_to_a_forbidden_target_is_refused(target: str) -> None:
    def away(visit: Visit) -> None:
        visit.answer(status=301, Location=target)

    with outside({"/": away}) as world:
        error = refused(PageFetcher(allow_private=True), f"{world.url}/")
    assert error.code == "ssrf_refused"


def test_redirect_from_a_public_site_into_this_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first hop is let through to a local server, as if that were public."""

    def public_looking(address: str, *, allow_private: bool = False) -> str | None:
        return None if address == "127.0.0.1" else refusal(address, allow_private=allow_private)

    with outside({"/": lambda v: v.answer(status=307, Location="http://[::1]:9999/")}) as world:
        monkeypatch.setattr("jobs.fetching.guard.refusal", public_looking)
        fetcher = PageFetcher(resolver=resolving_to("127.0.0.1"))
        error = refused(fetcher, f"http://public.example:{world.port}/")
    assert "loopback" in str(error)


def test_environment_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with outside({"/": lambda visit: visit.answer(article(PROSE).encode())}) as world:
        assert PageFetcher(allow_private=True).fetch(f"{world.url}/").text


def test_unknown_host_is_final_and_a_silent_name_server_is_not() -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    def silent(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    assert refused(PageFetcher(resolver=unknown), "http://no.example/").code == "unknown_host"
    with pytest.raises(FetchFailedForNow) as caught:
        PageFetcher(resolver=silent).fetch("http://slow.example/")
    assert caught.value.code == "dns_failed"
