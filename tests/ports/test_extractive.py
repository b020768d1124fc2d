"""The extractive summary is the text's own sentences, well chosen, bounded and repeatable."""

import itertools
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.composing import ExtractiveComposer, choose_composer
from jobs.demo_pages import PAGES, DemoPage, serve_pages
from jobs.fetching import PageFetcher
from jobs.ports.composition import Composition
from jobs.ports.errors import ComposeFailedForNow, PortCancelled
from jobs.ports.pages import Page

COMPOSER = ExtractiveComposer()


@pytest.fixture(scope="module", params=PAGES, ids=lambda demo: demo.file)
def page(request: pytest.FixtureRequest) -> Page:
    demo: DemoPage = request.param
    with serve_pages() as url:
        return PageFetcher(allow_private=True).fetch(f"{url}/{demo.file}")


def compose(text: str, *, title: str = "", count: int = 5) -> Composition:
    return COMPOSER.compose(text, title=title, max_sentences=count)


def test_no_setting_means_the_offline_composer() -> None:
    assert choose_composer() == ExtractiveComposer()


def test_summary_of_an_article_is_made_of_its_own_sentences_in_order(page: Page) -> None:
    made = compose(page.text, title=page.title)
    places = [page.text.index(sentence) for sentence in made.sentences]
    assert len(made.sentences) == 5
    assert places == sorted(places)
    assert len(set(made.sentences)) == 5
    assert all(len(sentence.split()) >= 5 for sentence in made.sentences)
    assert made.summary == " ".join(made.sentences)
    assert page.title not in made.sentences
    assert made.title == page.title
    assert made.source_words == pytest.approx(len(page.text.split()), rel=0.05)


def test_summary_speaks_of_the_articles_subject(page: Page) -> None:
    subject = {
        "Why the sea comes in twice a day": ("moon", "tide"),
        "How a stone bridge stands up": ("stone", "arch"),
        "One leaf, six teas": ("tea", "leaf"),
    }[page.title]
    summary = compose(page.text, title=page.title).summary.lower()
    assert all(word in summary for word in subject)


def test_same_text_gives_the_same_summary(page: Page) -> None:
    assert compose(page.text) == compose(page.text)


def test_summary_is_streamed_sentence_by_sentence(page: Page) -> None:
    pieces: list[str] = []
    made = COMPOSER.compose(page.text, title="", max_sentences=4, on_text=pieces.append)
    assert len(pieces) == 4
    assert "".join(pieces) == made.summary


def test_repeated_sentences_are_taken_once() -> None:
    said = "The ferry crosses the wide strait four times every single day."
    again = "The ferry crosses the wide strait four times every single day!"
    other = "Bakers in the northern harbour sell warm rye bread before sunrise."
    made = compose(f"{said} {again} {said} {other}", count=4)
    assert made.sentences == [said, other]


def test_text_in_japanese_is_summarised_without_spaces() -> None:
    text = (
        "渡し船は一日に四回、海峡を渡ります。船長は出航の前に必ず水面を見ます。"
        "港のパン屋は夜明け前に開きます。渡し船の船長は三十年も海峡を渡ってきました。"
    )
    made = compose(text, title="渡し船", count=2)
    assert len(made.sentences) == 2
    assert made.summary == "".join(made.sentences)
    assert "渡し船" in made.summary


def test_fragments_are_used_when_there_is_nothing_else() -> None:
    assert compose("Yes. No. Perhaps.").sentences == ["Yes.", "No.", "Perhaps."]


@pytest.mark.parametrize("text", ["", "  \n ", "...!!!", "\x00", "— — —"])
def test_text_without_sentences_gives_an_empty_summary(text: str) -> None:
    made = compose(text)
    assert (made.sentences, made.summary, made.source_words) == ([], "", 0)


def words(count: int) -> str:
    """Many different sentences about the same few hundred words."""
    names = [f"{a}{b}{c}" for a, b, c in itertools.product("bdfglmn", "aeiou", "rstkp")]
    return " ".join(
        " ".join(names[(i * 7 + j * j) % len(names)] for j in range(14)).capitalize() + "."
        for i in range(count)
    )


@pytest.mark.parametrize(
    "text",
    [words(18_000), "a" * 1_000_000, "no end " * 140_000, "A. " * 330_000, "。" * 1_000_000,
     "." * 1_000_000, "(" * 1_000_000, "x.y" * 330_000, "かな" * 500_000, ". \"'" * 250_000],
    ids=["prose", "word", "unstopped", "initials", "ends", "dots", "brackets", "dotted", "kana",
         "quotes"],
)  # fmt: skip
def test_a_megabyte_is_summarised_in_seconds(text: str) -> None:
    began = time.process_time()
    made = compose(text)
    assert time.process_time() - began < 4
    assert len(made.summary) < 5_000


def test_stop_sign_and_deadline_end_the_work() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(PortCancelled):
        COMPOSER.compose("Text.", title="", max_sentences=1, cancelled=stop)
    with pytest.raises(ComposeFailedForNow):
        COMPOSER.compose("Text.", title="", max_sentences=1, deadline=time.monotonic() - 1)


def test_stop_sign_is_obeyed_between_streamed_sentences(page: Page) -> None:
    stop = threading.Event()
    pieces: list[str] = []

    def stop_after_first(piece: str) -> None:
        pieces.append(piece)
        stop.set()

    with pytest.raises(PortCancelled):
        COMPOSER.compose(
            page.text, title="", max_sentences=3, cancelled=stop, on_text=stop_after_first
        )
    assert len(pieces) == 1


def test_asking_for_no_sentence_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        compose("Text.", count=0)


@given(st.text(max_size=2000), st.text(max_size=400), st.integers(min_value=1, max_value=100))
def test_any_text_gives_a_bounded_summary_of_its_own_pieces(
    text: str, title: str, count: int
) -> None:
    made = compose(text, title=title, count=count)
    assert len(made.sentences) <= min(count, 50)
    assert len(made.title) <= 300
    assert all(sentence in text for sentence in made.sentences)
