"""Cut prose into sentences, in scripts with and without spaces.

Guarantees: every sentence is a piece of the input, unchanged, in order, without overlap, at most
`MAX_SENTENCE_CHARS` long; time grows with the text only. Pure. Leaves to others: which matter.
"""

import re
from collections.abc import Iterator

#: A longer "sentence" (a table, a page without full stops) is cut at a pause or a space.
MAX_SENTENCE_CHARS = 600

_WIDE_ENDS = "。！？｡．"
_CLOSERS = "\"'”’»›)]}」』）】》〉"
_OPENERS = "\"'“‘«‹([{¿¡„‚—–-"
#: Full stops, marks and ellipses, with the quotes and brackets that close after them.
_END = re.compile(rf"[.!?…‽؟۔।॥{_WIDE_ENDS}]+[{re.escape(_CLOSERS)}]*")
_PAUSE = re.compile(r"[;:,،、，；：](?=\s|[^\x00-\x7f])|\s")
_LAST_WORD = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")
#: How far back an abbreviation may begin, characters.
_WORD_WINDOW = 12

#: Words whose full stop does not end a sentence, written without it.
_TITLES_AND_SHORTHAND = (
    "mr mrs ms mx dr prof rev hon st sr jr mt messrs gen col lt sgt capt cmdr adm gov sen rep pres"
    " e.g i.e cf vs viz al fig figs eq sec ch vol vols pp ed eds approx ca est dept univ"
    " hr fr dipl ing bzw z.b d.h u.a vgl s.o s.u mme mlle mgr sig sra srta dña"
    " т.е т.к т.д т.п г ул им проф акад"
)
#: Words whose full stop does not end a sentence when a number follows ("No. 5", "Sept. 3").
_COUNTED_THINGS = "no nos nr art p pp op abb tab bd kap § jan feb aug sept oct nov dec"
_ALWAYS = frozenset(_TITLES_AND_SHORTHAND.split())
_BEFORE_NUMBERS = frozenset(_COUNTED_THINGS.split())


def split_sentences(text: str) -> list[str]:
    """Give the sentences of `text`; a line break always ends one."""
    return [
        piece
        for line in text.splitlines()
        for sentence in _sentences(line)
        for piece in _pieces(sentence)
    ]


def _sentences(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if _ends_here(line, end):
            yield line[start : end.end()].strip()
            start = end.end()
    yield line[start:].strip()


def _ends_here(line: str, end: re.Match[str]) -> bool:
    marks = end.group().rstrip(_CLOSERS)
    following = line[end.end() : end.end() + 3]
    if not following.strip():
        return True
    if any(mark in _WIDE_ENDS for mark in marks):
        return True
    if not following[0].isspace():
        return False
    begin = following.lstrip().lstrip(_OPENERS)[:1]
    if begin.islower():
        return False
    return marks != "." or not _is_abbreviation(line, end.start(), begin)


def _is_abbreviation(line: str, stop: int, following: str) -> bool:
    found = _LAST_WORD.search(line, max(0, stop - _WORD_WINDOW), stop)
    if found is None:
        return False
    word = found.group()
    lowered = word.lower()
    if lowered in _BEFORE_NUMBERS:
        return following.isdigit()
    # One capital is an initial ("J. Smith"), except the English pronoun.
    # Dotted capitals ("U.S.") count too: two sentences in one read better than half a sentence.
    initials = word.isupper() and (len(word) == 1 or "." in word)
    return lowered in _ALWAYS or (initials and word != "I")


def _pieces(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > MAX_SENTENCE_CHARS:
        half, full = start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS
        pauses = [pause.end() for pause in _PAUSE.finditer(sentence, half, full)]
        cut = pauses[-1] if pauses else full
        if piece := sentence[start:cut].strip():
            yield piece
        start = cut
    if piece := sentence[start:].strip():
        yield piece
