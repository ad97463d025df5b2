"""How text is cut into words, against the real FTS5."""

import sys
import unicodedata
from base64 import b64encode
from random import Random

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.archive.index.tokenizer import (
    ACCENTS,
    IdentifierParts,
    find_part_spans,
    fold,
    level,
    normalize,
    prepare_text,
    query_words,
    split_words,
    tokenize,
)

pytestmark = pytest.mark.slow

TABLE = 'CREATE VIRTUAL TABLE page USING fts5(text, content="", tokenize="unicode61 remove_diacritics 2")'
NASTY = st.sampled_from(
    [
        "日本語", "カタカナ", "ｶﾀｶﾅ", "한국어", "ไทยที่", "ລາວ", "မြန်မာ", "ខ្មែរ", "𠀀𠀁", "\U00030000", "々", "\u3007",
        "é", "e\u0301", "\u0301", "\u0302\u0301", "İ", "ß", "\u017f", "Σς", "ά", "ế", "\u3099", "\u20dd", "\ufe0f", "\u200d",
        "🎉", "🤔", "\ue0b0", "\u0378", "\u19b0", "\u00ad", "\u200b", "\ud800", "\x00", "_", "-", "aB", "HTTPServer", "½",
        "timeZone", "Ǆ", "ǆ", " ", "\n", "x", "9", "٣", "²", "“", "—", "\uffff", "\U0010ffff",
    ]
)  # fmt: skip
TEXTS = st.lists(NASTY | st.characters() | st.text(max_size=5), max_size=12).map("".join)


def indexed(text: str) -> list[str]:
    """Return the words that FTS5 has of a text, in their order."""
    db = apsw.Connection(":memory:")
    db.execute(TABLE)
    db.execute("INSERT INTO page(rowid, text) VALUES (1, ?)", (text,))
    db.execute("CREATE VIRTUAL TABLE word USING fts5vocab(page, instance)")
    return [str(term) for (term,) in db.execute("SELECT term FROM word ORDER BY offset")]


YOUNG = {
    character
    for character in map(chr, range(0x370, sys.maxunicode))
    if character.casefold() != character or character.lower() != character or character.upper() != character
}
"""Letters with case beyond Latin: some are younger than the tables of FTS5."""


@settings(max_examples=500)
@given(TEXTS)
def test_fts5_cuts_where_we_do(text: str) -> None:
    found, expected = indexed(prepare_text(text)), tokenize(text)
    if YOUNG.isdisjoint(unicodedata.normalize("NFC", text)) and not {"ǡ", "Ǡ"} & set(text):
        assert found == expected
    else:
        assert len(found) == len(expected)


def test_fts5_cuts_at_the_same_of_all_characters() -> None:
    for plane in (0, 1, 2, 3, 14):
        characters = [chr(code) for code in range(plane << 16, (plane + 1) << 16)]
        text = " ".join([f"1{character}2" for character in characters])
        assert len(indexed(prepare_text(text))) == len(split_words(text)), plane


def test_only_letters_younger_than_its_tables_fold_otherwise() -> None:
    letters = [chr(code) for code in range(0x80, sys.maxunicode) if chr(code).isalnum()]
    letters = [letter for letter in letters if len(tokenize(letter)) == 1]
    differing = [
        letter
        for letter, folded in zip(
            letters, indexed(" ".join([f"x{letter}" for letter in letters])), strict=True
        )
        if f"x{fold(letter)}" != folded
    ]
    assert {letter for letter in differing if letter < "\u0528"} <= {"Ǡ", "ǡ", "\u037f"}
    assert len(differing) < 500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("日本語", "日本 本語 語"),
        ("日", "日"),
        ("das 日本語!", "das 日本 本語 語 !"),
        ("使用Python", "使用 用 Python"),
        ("plain words, snake_case and a/b.py", "plain words, snake_case and a/b.py"),
        ("done\U0001f914now", "done \U0005f914 now"),
        ("ok\u2713 \U0001f389\U0001f389", "ok \U00042713   \U0005f389  \U0005f389 "),
        ("\ufb01ne \uff38 Foo\u2122 \u2026", "fine X Foo TM  \u2026"),
        ("\u304b\u3099", "\u304c"),
        ("", ""),
    ],
)
def test_spread(text: str, expected: str) -> None:
    assert prepare_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the timeZone, the timeZone", {"timeZone"}),
        ("HTTPServer2 and parseHTML5Doc", {"HTTPServer2", "parseHTML5Doc"}),
        ("URLs of SHA256 are IDs", set()),
        ("snake_case and a_timeZone.ts", {"timeZone"}),
        ("iPhone", {"iPhone"}),
        ("größeTest", {"eTest"}),
        ("", set()),
    ],
)
def test_names_with_humps(text: str, expected: set[str]) -> None:
    assert new_names(text) == expected


def new_names(text: str) -> set[str]:
    return {name for name, _ in IdentifierParts().find_new([text.encode()])}


def test_base64_has_no_names() -> None:
    assert new_names("aGVsbG8gd29ybGQ" * 5 + " x9aBc8dEf7gHi") == set()
    assert new_names(b64encode(Random(1).randbytes(30_000)).decode()) == set()  # noqa: S311 - the same each time


def test_names_of_several_texts_are_those_of_each() -> None:
    encoded = b64encode(Random(1).randbytes(3000))  # noqa: S311 - the same each time
    texts = [b"timeZone", encoded + b" moonPhase fooBar", b"", b"timeZone fooBar", b"tideTable fooBar"]
    names = IdentifierParts()
    assert list(names.find_new(texts)) == [("timeZone", 0), ("fooBar", 3), ("tideTable", 4)]
    assert list(names.find_new([b"tideTable moonPhase"])) == [("moonPhase", 0)]


def test_what_cannot_be_encoded_does_not_reach_sqlite() -> None:
    assert indexed(prepare_text("half \ud83d a pair")) == ["half", "a", "pair"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zürich", (["Zürich"], False)),
        ("日", (["日"], True)),
        ("日本", (["日本"], False)),
        ("日本語", (["日本", "本語"], False)),
        ("使用Python", (["使用", "用", "Python"], False)),
        ("Python日", (["Python", "日"], True)),
        ("x \u0e48", (["x"], False)),
        ("++", ([], False)),
    ],
)
def test_what_a_text_is_found_by(text: str, expected: tuple[list[str], bool]) -> None:
    assert query_words(text) == expected


@given(st.text(alphabet="日本語กินข้าวที่", min_size=1, max_size=8), st.integers(0, 7), st.integers(1, 8))
def test_a_run_is_found_by_any_of_its_parts(run: str, start: int, length: int) -> None:
    words, is_open = query_words(run[start : start + length])
    having = tokenize(f"a {run} b")
    matching = [
        place
        for place in range(len(having) - len(words) + 1)
        if having[place : place + len(words) - 1] == words[:-1]
        and (
            not words
            or having[place + len(words) - 1] == words[-1]
            or (is_open and having[place + len(words) - 1].startswith(words[-1]))
        )
    ]
    assert matching


@given(TEXTS)
def test_a_leveled_text_is_as_long_as_before(text: str) -> None:
    assert len(level(text)) == len(text)


def test_the_accents_are_those_that_fts5_takes_off() -> None:
    marks = [chr(code) for code in range(0x80, 0x3000) if not chr(code).isalnum()]
    found = indexed(" ".join([f"a{mark}b" for mark in marks]))
    assert found.count("ab") == len(ACCENTS)
    assert tokenize("".join([f"a{accent}" for accent in ACCENTS])) == ["a" * len(ACCENTS)]


@given(TEXTS)
def test_a_text_and_its_composed_and_decomposed_forms_have_the_same_words(text: str) -> None:
    assert tokenize(unicodedata.normalize("NFC", text)) == tokenize(text)
    assert tokenize(unicodedata.normalize("NFD", text)) == tokenize(text)
    assert normalize(normalize(text)) == normalize(text)


def test_folding_twice_changes_nothing() -> None:
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    assert level(level(text)) == level(text)
    assert level("ÀÉ—Ω") == "ae—ω"


def test_names_are_taken_apart_where_their_humps_are() -> None:
    assert find_part_spans("timeZone2") == [(0, 4), (4, 9), (4, 8)]
    assert find_part_spans("zone") == []
