"""Summarise without a model: pick the sentences that carry a text, in the text's own words.

Guarantees: every sentence of the summary is a piece of the text, in the text's order, none twice
or nearly so; the same text gives the same summary; a megabyte takes about a second; no text makes
it fail (a text without sentences gives an empty summary). Leaves to others: anything that needs
understanding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobs.composing.ranking import MAX_RANKED, Vector, cosine, rank, vectors
from jobs.composing.sentences import split_sentences
from jobs.composing.words import count_words, has_cjk, terms
from jobs.ports.bounds import Bounds, OutOfTime, StopSign
from jobs.ports.composition import Composition
from jobs.ports.errors import ComposeFailedForNow

MODEL = "extractive"

#: Text beyond this is not read, characters; sentences beyond this are not produced.
MAX_TEXT_CHARS = 2_000_000
MAX_SENTENCES = 50
MAX_TITLE_CHARS = 300

#: Sentences with fewer terms than this say too little, unless there is nothing better.
_MIN_TERMS = 4
#: Two sentences more alike than this say the same.
_SAME = 0.6
#: The opening sentences carry more than their links show, in articles above all.
_OPENING = (0.6, 0.3, 0.15)
_TITLE_WEIGHT = 0.6
_NO_END = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractiveComposer:
    """The default composer: offline, deterministic, free."""

    def compose(
        self,
        text: str,
        *,
        title: str,
        max_sentences: int,
        deadline: float | None = None,
        cancelled: StopSign | None = None,
        on_text: Callable[[str], None] | None = None,
        idempotency_key: str | None = None,
    ) -> Composition:
        """Pick at most `max_sentences` (and 50) sentences; streams one sentence at a time.

        Raises: PortCancelled, ComposeFailedForNow (timeout), ValueError if `max_sentences` < 1.
        On repeat: the same summary. `idempotency_key` has nothing to protect here.
        """
        del idempotency_key
        if max_sentences < 1:
            raise ValueError(f"max_sentences must be at least 1, not {max_sentences}")
        bounds = Bounds(end=_NO_END if deadline is None else deadline, cancelled=cancelled)
        try:
            bounds.check()
            text = text[:MAX_TEXT_CHARS]
            chosen = summarise(
                text, title=title, count=min(max_sentences, MAX_SENTENCES), check=bounds.check
            )
            summary = _stream(chosen, "" if has_cjk(text) else " ", on_text, bounds.check)
        except OutOfTime as exc:
            raise ComposeFailedForNow(
                "The summary was not ready before its deadline.", code="timeout"
            ) from exc
        return Composition(
            title=(title.strip() or (chosen[0] if chosen else ""))[:MAX_TITLE_CHARS],
            summary=summary,
            sentences=chosen,
            source_words=count_words(text),
            model=MODEL,
        )


def summarise(text: str, *, title: str, count: int, check: Callable[[], None]) -> list[str]:
    """Choose `count` sentences of `text`; `check` is called often and may raise to stop."""
    sentences = _thinned(_telling(split_sentences(text), title))
    check()
    units = vectors([terms(sentence) for sentence in sentences])
    scores = rank(units, check)
    # The title's terms, weighed like a sentence of the text.
    heading = vectors([terms(title), *(terms(sentence) for sentence in sentences)])[0]
    worth = [
        score * (1 + _opening(position) + _TITLE_WEIGHT * cosine(heading, unit))
        for position, (score, unit) in enumerate(zip(scores, units, strict=True))
    ]
    order = sorted(range(len(sentences)), key=lambda i: (-worth[i], i))
    return [sentences[i] for i in sorted(_different(order, units, count, check))]


def _telling(sentences: Sequence[str], title: str) -> list[str]:
    """Leave out repeats, the title and fragments; keep fragments if there is nothing else."""
    seen = {_key(title)}
    unique: list[str] = []
    for sentence in sentences:
        key = _key(sentence)
        if key not in seen and any(map(str.isalnum, key)):
            seen.add(key)
            unique.append(sentence)
    long = [sentence for sentence in unique if len(terms(sentence)) >= _MIN_TERMS]
    return long or unique


def _thinned(sentences: list[str]) -> list[str]:
    """Keep the first half of the allowance whole and spread the other half over the rest."""
    if len(sentences) <= MAX_RANKED:
        return sentences
    kept = MAX_RANKED // 2
    rest = sentences[kept:]
    return sentences[:kept] + [rest[i * len(rest) // kept] for i in range(kept)]


def _different(
    order: Sequence[int], units: Sequence[Vector], count: int, check: Callable[[], None]
) -> list[int]:
    """Take sentences in order of worth, passing over what the taken ones already say."""
    taken: list[int] = []
    for candidate in order:
        check()
        if len(taken) == count:
            break
        if all(cosine(units[candidate], units[other]) < _SAME for other in taken):
            taken.append(candidate)
    return taken


def _opening(position: int) -> float:
    return _OPENING[position] if position < len(_OPENING) else 0.0


def _key(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).strip(" .!?…。！？")


def _stream(
    sentences: Sequence[str],
    joint: str,
    on_text: Callable[[str], None] | None,
    check: Callable[[], None],
) -> str:
    pieces = [sentence if i == 0 else joint + sentence for i, sentence in enumerate(sentences)]
    if on_text is not None:
        for piece in pieces:
            check()
            on_text(piece)
    return "".join(pieces)
