"""What a fetch makes of sites that answer well, badly, slowly, hugely or not at all."""

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable, Sequence

import pytest

from jobs.demo_pages import PAGES, serve_pages
from jobs.fetching import PageFetcher
from jobs.ports.errors import FetchFailedForNow, FetchRefused, PortCancelled
from kernel import NonRetryable
from tests.kit.waiting import eventually
from tests.ports.outside import PROSE, Visit, article, outside, resolving_to

LOCAL = PageFetcher(allow_private=True)
GOOD = article(PROSE, title="The ferry").encode()


def failure(page: Callable[[Visit], None], fetcher: PageFetcher = LOCAL) -> Exception:
    with outside({"/": page}) as world:
        with pytest.raises((FetchRefused, FetchFailedForNow)) as caught:
            fetcher.fetch(f"{world.url}/")
        return caught.value


def test_page_comes_with_text_title_language_and_origin() -> None:
    with outside({"/ferry": lambda visit: visit.answer(GOOD)}) as world:
        page = LOCAL.fetch(f" {world.url}/ferry?x=1#part ")
    assert page.title == "The ferry"
    assert PROSE in page.text
    assert "Home" not in page.text
    assert "Imprint" not in page.text
    assert (page.language, page.content_type, page.charset) == ("en", "text/html", "utf-8")
    assert page.final_url == f"{world.url}/ferry?x=1"
    assert page.byte_count == len(GOOD)


@pytest.mark.parametrize("demo", PAGES, ids=lambda demo: demo.file)
def test_shipped_demo_page_is_read_without_its_clutter(demo: object) -> None:
    page = next(page for page in PAGES if page == demo)
    with serve_pages() as url:
        fetched = LOCAL.fetch(f"{url}/{page.file}")
    assert fetched.title == page.title
    assert 400 <= len(fetched.text.split()) <= 900
    for clutter in ("cookies", "Subscribe", "Imprint", "pageSettings", "Advertisement", "�"):
        assert clutter not in fetched.text
    assert len(page.path.read_bytes()) < 30_000


def test_legacy_demo_page_keeps_its_accents_and_quotes() -> None:
    with serve_pages() as url:
        page = LOCAL.fetch(f"{url}/bridges.html")
    assert page.charset == "cp1252"
    assert "“As hangs the chain" in page.text
    assert "Saint-Bénézet" in page.text


def test_redirects_are_followed_with_cookies_up_to_the_limit() -> None:
    def first(visit: Visit) -> None:
        visit.answer(status=302, Location="second", Set_Cookie="seen=1; Path=/")

    def second(visit: Visit) -> None:
        if "seen=1" in visit.headers.get("Cookie", ""):
            visit.answer(GOOD)
        else:
            visit.answer(status=302, Location="/first")

    with outside({"/first": first, "/second": second}) as world:
        page = LOCAL.fetch(f"{world.url}/first")
    assert page.url.endswith("/first")
    assert page.final_url.endswith("/second")


def test_redirect_loop_ends_after_the_limit() -> None:
    with (
        outside({"/": lambda visit: visit.answer(status=302, Location="/")}) as world,
        pytest.raises(FetchRefused) as caught,
    ):
        PageFetcher(allow_private=True, max_redirects=3).fetch(f"{world.url}/")
    assert caught.value.code == "too_many_redirects"
    assert len(world.visits) == 4


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "not_found"), (410, "not_found"), (401, "forbidden"), (403, "forbidden"),
        (451, "forbidden"), (400, "refused_by_site"), (302, "refused_by_site"), (204, "no_text"),
        (304, "refused_by_site"),
    ],
)  # fmt: skip
def test_final_status_is_not_retried(status: int, code: str) -> None:
    error = failure(lambda visit: visit.answer(status=status))
    assert isinstance(error, NonRetryable)
    assert error.code == code
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("status", "header", "code", "wait"),
    [
        (500, {}, "server_error", None),
        (503, {"Retry_After": "7"}, "server_error", 7.0),
        (429, {"Retry_After": "120"}, "rate_limited", 120.0),
        (429, {"Retry_After": "99999999999"}, "rate_limited", 86_400.0),
        (429, {"Retry_After": "Fri, 31 Dec 1999 23:59:59 GMT"}, "rate_limited", 0.0),
        (429, {"Retry_After": "soon"}, "rate_limited", None),
        (408, {}, "rate_limited", None),
    ],
)
def test_passing_status_may_be_retried_after_what_the_site_asks(
    status: int, header: dict[str, str], code: str, wait: float | None
) -> None:
    error = failure(lambda visit: visit.answer(b"", status=status, **header))
    assert isinstance(error, FetchFailedForNow)
    assert not isinstance(error, NonRetryable)
    assert (error.code, error.retry_after) == (code, wait)


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("application/pdf", b"%PDF-1.7", "unsupported_type"),
        ("image/png", b"\x89PNG", "unsupported_type"),
        ("application/json", b"{}", "unsupported_type"),
        ("text/html", b"%PDF-1.7 ...", "unsupported_type"),
        ("text/html", b"<p>a\x00b\x00\x00c" * 50, "unsupported_type"),
        ("text/html", b"", "no_text"),
        ("text/html", b"<html><body><script>app()</script></body></html>", "no_text"),
        ("text/plain", b" \n ", "no_text"),
        ("text/html", b"<" * 100_000, "no_text"),
        ("text/html", b"<p><a href='/'>link</a>" * 60_000, "too_large"),
    ],
)
def test_what_cannot_be_read_is_refused(kind: str, body: bytes, code: str) -> None:
    error = failure(lambda visit: visit.answer(body, kind=kind))
    assert isinstance(error, FetchRefused)
    assert error.code == code


def test_plain_text_and_missing_types_are_read() -> None:
    plain = f"The ferry\n\n{PROSE}\n\nEnd of\nthe page.\n".encode()
    pages: dict[str, Callable[[Visit], None]] = {
        "/plain.txt": lambda visit: visit.answer(plain, kind="text/plain"),
        "/untyped": lambda visit: visit.answer(GOOD, kind=""),
        "/xhtml": lambda visit: visit.answer(
            b'<?xml version="1.0" encoding="utf-8"?>\n' + GOOD, kind="application/xhtml+xml"
        ),
    }
    with outside(pages) as world:
        page = LOCAL.fetch(f"{world.url}/plain.txt")
        assert (page.title, page.text) == ("The ferry", f"{PROSE}\nEnd of the page.")
        assert LOCAL.fetch(f"{world.url}/untyped").content_type == "text/html"
        assert PROSE in LOCAL.fetch(f"{world.url}/xhtml").text


def test_deeply_nested_markup_is_refused_in_time() -> None:
    deep = b"<div>" * 50_000 + PROSE.encode() + b"</div>" * 50_000
    error = failure(lambda visit: visit.answer(deep))
    assert isinstance(error, FetchRefused)
    assert error.code == "no_text"


SMALL = PageFetcher(allow_private=True, max_bytes=50_000)


def test_declared_size_over_the_limit_is_refused_without_reading() -> None:
    error = failure(lambda visit: visit.begin(Content_Length="50001"), SMALL)
    assert isinstance(error, FetchRefused)
    assert error.code == "too_large"


def test_endless_body_is_cut_off_at_the_limit() -> None:
    def endless(visit: Visit) -> None:
        visit.begin()
        while not visit.outside.closing.is_set():
            visit.wfile.write(b"<p>more and more</p>" * 100)

    error = failure(endless, SMALL)
    assert isinstance(error, FetchRefused)
    assert error.code == "too_large"


def bomb(kind: str) -> bytes:
    huge = b"a" * 60_000_000
    return gzip.compress(huge) if kind == "gzip" else zlib.compress(huge)


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
def test_compression_bomb_is_refused_at_the_limit(kind: str) -> None:
    body = bomb(kind)
    error = failure(
        lambda visit: visit.answer(body, Content_Encoding=kind),
        PageFetcher(allow_private=True, max_bytes=100_000),
    )
    assert isinstance(error, FetchRefused)
    assert error.code == "too_large"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(GOOD)),
        ("x-gzip", gzip.compress(GOOD[:200]) + gzip.compress(GOOD[200:])),
        ("deflate", zlib.compress(GOOD)),
        ("deflate", raw_deflate(GOOD)),
        ("identity", GOOD),
        ("gzip", gzip.compress(GOOD) + b"\0" * 16),
    ],
)
def test_compressed_page_is_read(encoding: str, body: bytes) -> None:
    with outside({"/": lambda visit: visit.answer(body, Content_Encoding=encoding)}) as world:
        page = LOCAL.fetch(f"{world.url}/")
    assert PROSE in page.text
    assert page.byte_count == len(GOOD)
    assert "br" not in world.headers[0]["Accept-Encoding"]


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    error = failure(lambda visit: visit.answer(b"\x8b\x00", Content_Encoding=encoding))
    assert isinstance(error, FetchRefused)
    assert error.code == "unsupported_encoding"


@pytest.mark.parametrize(
    "page",
    [
        lambda visit: visit.answer(gzip.compress(GOOD)[:-12], Content_Encoding="gzip"),
        lambda visit: visit.answer(b"no gzip at all", Content_Encoding="gzip"),
        lambda visit: (visit.begin(Content_Length="5000"), visit.wfile.write(GOOD[:100])),
        lambda visit: visit.wfile.write(b"220 mail.example ESMTP\r\n"),
        lambda visit: visit.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000),
        lambda visit: visit.wfile.flush(),
    ],
    ids=["short gzip", "no gzip", "short body", "no http", "endless header", "hang up"],
)
def test_broken_answer_may_be_retried(page: Callable[[Visit], None]) -> None:
    error = failure(page)
    assert isinstance(error, FetchFailedForNow)
    assert error.code in ("cut_short", "connection_failed")


def drip(visit: Visit) -> None:
    visit.begin()
    while not visit.outside.closing.wait(0.02):
        visit.wfile.write(b"a")


def drip_head(visit: Visit) -> None:
    visit.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not visit.outside.closing.wait(0.02):
        visit.wfile.write(b"a")


def mute(visit: Visit) -> None:
    visit.outside.closing.wait(30)


@pytest.mark.parametrize("page", [drip, drip_head, mute])
def test_slow_server_is_stopped_by_the_wall_clock(page: Callable[[Visit], None]) -> None:
    began = time.monotonic()
    error = failure(page, PageFetcher(allow_private=True, timeout=0.5))
    assert isinstance(error, FetchFailedForNow)
    assert error.code == "timeout"
    assert time.monotonic() - began < 5


def test_markup_that_keeps_the_parser_busy_is_stopped_by_the_wall_clock() -> None:
    busy = b"<html><body><p>" + b"a<br>" * 70_000
    error = failure(lambda visit: visit.answer(busy), PageFetcher(allow_private=True, timeout=0.3))
    assert isinstance(error, FetchFailedForNow)
    assert error.code == "timeout"


def test_callers_deadline_is_earlier_than_the_timeout() -> None:
    with outside({"/": mute}) as world, pytest.raises(FetchFailedForNow, match="within its time"):
        LOCAL.fetch(f"{world.url}/", deadline=time.monotonic() + 0.3)
    with pytest.raises(FetchFailedForNow, match="within its time"):
        LOCAL.fetch("http://127.0.0.1:9/", deadline=time.monotonic() - 1)


def test_name_look_up_is_bounded_too() -> None:
    release = threading.Event()

    def stuck(host: str, port: int) -> Sequence[str]:
        release.wait(30)
        return []

    with pytest.raises(FetchFailedForNow) as caught:
        PageFetcher(resolver=stuck, timeout=0.3).fetch("http://stuck.example/")
    release.set()
    assert caught.value.code == "timeout"


@pytest.mark.parametrize("page", [drip, mute])
def test_stop_sign_ends_a_running_download(page: Callable[[Visit], None]) -> None:
    stop = threading.Event()
    ended: list[BaseException] = []

    def run(url: str) -> None:
        try:
            LOCAL.fetch(url, cancelled=stop)
        except PortCancelled as exc:
            ended.append(exc)

    with outside({"/": page}) as world:
        thread = threading.Thread(target=run, args=(f"{world.url}/",))
        thread.start()
        eventually(lambda: world.visits)
        stop.set()
        thread.join(5)
        assert not thread.is_alive()
    assert len(ended) == 1


def test_stop_sign_that_is_up_already_sends_nothing() -> None:
    stop = threading.Event()
    stop.set()
    with outside({}) as world, pytest.raises(PortCancelled):
        LOCAL.fetch(f"{world.url}/", cancelled=stop)
    assert world.visits == []


def test_closed_port_may_be_retried_and_the_next_address_is_tried() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
        with pytest.raises(FetchFailedForNow) as caught:
            LOCAL.fetch(f"http://127.0.0.1:{closed}/")
    assert caught.value.code == "connection_failed"
    with outside({"/": lambda visit: visit.answer(GOOD)}) as world:
        # The server listens on .1 only.
        fetcher = PageFetcher(allow_private=True, resolver=resolving_to("127.0.0.2", "127.0.0.1"))
        assert fetcher.fetch(f"http://two.example:{world.port}/").text
