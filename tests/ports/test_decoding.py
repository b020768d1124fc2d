"""Pages come out right in the encodings of the world, with right, wrong and missing labels."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.fetching.decoding import codec_of, decode
from tests.ports.outside import article

JAPANESE = (
    "渡し船は一日に四回、海峡を渡ります。船長は出航の前に必ず水面を見ます。天気は関係ありません。"
    * 3
)
RUSSIAN = (
    "Паром пересекает пролив четыре раза в день. Капитан всегда смотрит на воду перед выходом. " * 3
)
CHINESE = "渡船每天四次横渡海峡，无论天气如何。船长每次出发之前都要看一看水面。" * 4
KOREAN = "나룻배는 하루에 네 번 해협을 건넌다. 선장은 출발하기 전에 항상 물을 바라본다. " * 3
FRENCH = "Le bac traverse le détroit à marée haute, été comme hiver : « où ça ? », dit-elle. " * 3
GREEK = "Το πορθμείο διασχίζει το στενό τέσσερις φορές την ημέρα, ό,τι καιρό κι αν κάνει. " * 3

ENCODINGS = [
    ("shift_jis", "cp932", JAPANESE),
    ("euc-jp", "euc_jp", JAPANESE),
    ("windows-1251", "cp1251", RUSSIAN),
    ("koi8-r", "koi8-r", RUSSIAN),
    ("gb18030", "gb18030", CHINESE),
    ("gb2312", "gb18030", CHINESE),
    ("euc-kr", "cp949", KOREAN),
    ("iso-8859-1", "cp1252", FRENCH),
    ("windows-1253", "cp1253", GREEK),
    ("utf-8", "utf-8", GREEK),
]


@pytest.mark.parametrize(("label", "used", "text"), ENCODINGS)
def test_header_names_the_encoding(label: str, used: str, text: str) -> None:
    assert decode(article(text).encode(label), label=label) == (article(text), used)


@pytest.mark.parametrize(("label", "used", "text"), ENCODINGS)
def test_page_names_its_own_encoding(label: str, used: str, text: str) -> None:
    page = article(text, charset=label)
    assert decode(page.encode(label), label=None) == (page, used)


@pytest.mark.parametrize(("label", "used", "text"), ENCODINGS)
@pytest.mark.parametrize("wrong", ["utf-8", "no-such-charset", "utf-16", "hex", "ascii-ish"])
def test_wrong_or_unknown_header_gives_way_to_the_page(
    label: str, used: str, text: str, wrong: str
) -> None:
    page = article(text, charset=label)
    assert decode(page.encode(label), label=wrong) == (page, used)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("shift_jis", JAPANESE), ("euc-jp", JAPANESE), ("windows-1251", RUSSIAN),
        ("gb18030", CHINESE), ("euc-kr", KOREAN), ("utf-8", JAPANESE), ("utf-16-le", FRENCH),
        ("utf-16-be", FRENCH), ("windows-1253", GREEK),
    ],
)  # fmt: skip
def test_unlabelled_page_is_recognised_by_its_content(encoding: str, text: str) -> None:
    page = article(text)
    assert decode(page.encode(encoding), label=None)[0] == page


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1252", "ascii", "windows-1251"])
def test_utf8_page_under_a_one_byte_label_is_read_as_utf8(label: str) -> None:
    page = article(FRENCH)
    assert decode(page.encode(), label=label) == (page, "utf-8")


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("label", [None, "utf-8", "utf-16"])
def test_byte_order_mark_is_obeyed_and_removed(
    mark: bytes, encoding: str, label: str | None
) -> None:
    page = article(GREEK)
    assert decode(mark + page.encode(encoding), label=label) == (page, encoding)


def test_declaration_inside_a_comment_or_claiming_utf16_does_not_count() -> None:
    page = "<!-- <meta charset=koi8-r> --><meta charset='utf-16'>" + article(RUSSIAN)
    assert decode(page.encode(), label=None) == (page, "utf-8")


def test_a_few_broken_bytes_do_not_overthrow_a_right_label() -> None:
    raw = article(RUSSIAN).encode() + b"\xff\xfe broken"
    text, used = decode(raw, label="utf-8")
    assert used == "utf-8"
    assert RUSSIAN in text


def test_old_meta_form_and_xml_declaration_are_understood() -> None:
    meta = '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">' + RUSSIAN
    assert decode(meta.encode("cp1251"), label=None) == (meta, "cp1251")
    xml = '<?xml version="1.0" encoding="koi8-r"?>' + RUSSIAN
    assert decode(xml.encode("koi8-r"), label=None) == (xml, "koi8-r")


@pytest.mark.parametrize("label", ["hex", "base64", "rot13", "idna", "punycode", "", "☃", "\x00"])
def test_label_that_is_no_charset_is_unknown(label: str) -> None:
    assert codec_of(label) is None


@given(st.binary(max_size=3000), st.one_of(st.none(), st.text(max_size=20)), st.booleans())
def test_any_bytes_become_text(raw: bytes, label: str | None, markup: bool) -> None:
    text, used = decode(raw, label=label, markup=markup)
    assert isinstance(text, str)
    assert codecs.lookup(used)
