"""Words as the summariser counts them.

Guarantees: the same text gives the same terms everywhere; scripts without spaces are counted by
pairs of characters. Pure. Leaves to others: what is done with the counts.
"""

import re

_CJK = "぀-ヿ㐀-䶿一-鿿豈-﫿ｦ-ﾟ"
_TOKEN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:['’\-][^\W_{_CJK}]+)*")
_IS_CJK = re.compile(rf"[{_CJK}]")

# English words that say nothing about a subject. For other languages the document's own
# frequencies do this work: a word in every sentence weighs nothing.
_STOP_TEXT = (
    "a about after all also an and any are as at be because been before but by can could did do"
    " does for from had has have he her here him his how i if in into is it its just like many may"
    " me more most much my no not now of on once one only or other our out over own said same she"
    " should so some such than that the their them then there these they this those through to"
    " too under up very was we were what when where which while who why will with would you your"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def terms(sentence: str) -> list[str]:
    """List what `sentence` is about, lower case, with repeats."""
    found: list[str] = []
    for token in _TOKEN.findall(sentence):
        if _IS_CJK.match(token):
            found.extend(token[i : i + 2] for i in range(max(1, len(token) - 1)))
        elif len(token) > 1 and (word := token.lower()) not in _STOP_WORDS:
            found.append(word)
    return found


def count_words(text: str) -> int:
    """Count words for people; each CJK character is one."""
    return sum(len(t) if _IS_CJK.match(t) else 1 for t in _TOKEN.findall(text))


def has_cjk(text: str) -> bool:
    """Tell whether sentences of this text are written without spaces between them."""
    return len(_IS_CJK.findall(text)) * 3 > len(text)
