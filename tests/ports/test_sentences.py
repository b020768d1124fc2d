"""Prose is cut where sentences end, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.composing.sentences import MAX_SENTENCE_CHARS, split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rained.", "Nobody minded!", "Why should they?", "Nobody knows…", "Well."],
        ["Dr. Hale met Mr. J. R. Smith at 5 p.m. on Friday.", "They talked."],
        ["The price fell by 3.5 percent, i.e. to 1.99 euros.", "Nobody bought."],
        ["See Fig. 3 and No. 7 on p. 12.", "The answer was no.", "It stayed no."],
        ["Visit example.com or read v1.2.3 of the notes.", "Then decide."],
        ["“Come in.”", "She did not move.", "“Why not?” he asked.", "Silence."],
        ["He said (and meant it.)", "She left."],
        ["Wait... no, go on.", "He waited...", "Then he went on."],
        ["It is I.", "You knew."],
        ["渡し船は海峡を渡ります。", "船長は「行こう。」", "と言った！", "本当？", "はい。"],
        ["渡船横渡海峡。", "天气如何？", "无所谓！"],
        ["Паром идёт.", "Он опаздывает, т.к. ветер.", "Все ждут!"],
        ["هل وصلت العبارة؟", "نعم وصلت.", "شكرا."],
        ["नाव चलती है।", "पानी शांत है।"],
        ["Hr. Prof. Dr. Weber kam z.B. um 8 Uhr.", "Er ging bald."],
        ["¿Dónde está?", "¡Aquí!", "Bien."],
        ["The U.S. Navy arrived.", "It left."],
        ["In 1999.", "3 men came."],
    ],
    ids=lambda sentences: sentences[0][:20],
)
def test_sentences_are_found(sentences: list[str]) -> None:
    joint = "" if sentences[-1].endswith(("。", "！")) else " "
    assert split_sentences(joint.join(sentences)) == sentences


def test_a_line_break_ends_a_sentence() -> None:
    assert split_sentences("A heading\nThe text.\n\n  More text  ") == [
        "A heading",
        "The text.",
        "More text",
    ]


def test_text_without_full_stops_is_cut_at_pauses() -> None:
    pieces = split_sentences("one two three, " * 300)
    assert all(len(piece) <= MAX_SENTENCE_CHARS for piece in pieces)
    assert all(piece.endswith((",", "one", "two", "three")) for piece in pieces)


@given(st.text(max_size=3000))
def test_sentences_are_pieces_of_the_text_in_order(text: str) -> None:
    end = 0
    for sentence in split_sentences(text):
        end = text.index(sentence, end) + len(sentence)
        assert 0 < len(sentence) <= MAX_SENTENCE_CHARS
        assert sentence == sentence.strip()
