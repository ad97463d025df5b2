"""No regular expression takes more than linear time, whatever the text.

The patterns are collected from the modules, so a new one is tested without being named here.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from retold.agents.gemini.messages import _is_wrapped
from retold.archive.foreign import _names_of
from retold.config import _with_home
from retold.redaction.placeholders import Placeholders, _mentions
from retold.redaction.rules import compile_words
from retold.search.query import Term
from retold.search.quick_find import _typo_pattern
from retold.search.results import _occurrences, _SearchText
from retold.search.text_scan import _letters
from retold.synchronization.import_offers import label_of_path, localize_path
from retold.synchronization.prices import library_date
from support.pattern_steps import Growth, Mode, StepCounter
from support.source_patterns import BuiltPattern, SourcePattern, collect, recorded_patterns

pytestmark = pytest.mark.slow

CHAINED = frozenset(
    (
        "retold.agents.claude.prompt_text._BLOCK",
        "retold.agents.claude.prompt_text._INTERRUPTION",
        "retold.maintenance.json_edit.TRIVIA",
        "retold.maintenance.json_edit._PLAIN",
        "retold.maintenance.json_edit._STRING",
        "retold.maintenance.json_edit._COMMENTS_ON_LINE",
        "retold.maintenance.toml_edit._KEY",
    )
)
"""Patterns of tokenizers: each match begins where the last one ended, and the first failure ends the loop."""

BUILT: dict[BuiltPattern, Callable[[], object] | None] = {
    BuiltPattern("retold.agents.gemini.messages", "_is_wrapped"): lambda: _is_wrapped("a b", "<x> a b </x>"),
    BuiltPattern("retold.archive.foreign", "_names_of"): lambda: _names_of(1, "SELECT name FROM names"),
    BuiltPattern("retold.archive.index.tokenizer", "compile"): None,  # of constants that are collected
    BuiltPattern("retold.config", "_with_home"): lambda: _with_home("[homes]\n", "x", "/y"),
    BuiltPattern("retold.synchronization.import_offers", "label_of_path"): lambda: label_of_path("/x/y"),
    BuiltPattern("retold.synchronization.import_offers", "localize_path"): lambda: localize_path("/x/y", "z"),
    BuiltPattern("retold.synchronization.prices", "library_date"): library_date,
    BuiltPattern("retold.search.quick_find", "_typo_pattern"): lambda: _typo_pattern.__wrapped__("migration"),
    BuiltPattern("retold.search.results", "_phrase_finder"): lambda: list(
        _occurrences(Term("phrase", "plain words", 0), _SearchText("re\u0301sume\u0301"))
    ),
    BuiltPattern("retold.search.text_scan", "_letters"): lambda: _letters("a.b"),
    BuiltPattern("retold.search.text_scan", "_pattern"): None,  # the user's own
    BuiltPattern("retold.redaction.rules", "compile_words"): lambda: compile_words(
        ("kennwort", "key", "token")
    ),
    BuiltPattern("retold.redaction.placeholders", "_mentions"): lambda: (
        _mentions("max"),
        _mentions("maxine"),
    ),
    BuiltPattern("retold.redaction.placeholders", "learn_home"): lambda: Placeholders().learn_home(
        "/srv/people/maxine"
    ),
    BuiltPattern(
        "retold.insights.decisions", "_pattern"
    ): None,  # called once, for a constant that is collected
}
"""Calls that build a pattern while the program runs, each with an example."""


@pytest.fixture(scope="module")
def collected() -> tuple[list[SourcePattern], set[BuiltPattern]]:
    return collect()


def worst(pattern: re.Pattern[Any], mode: Mode) -> Growth | None:
    """The first hostile text whose steps grow faster than the text."""
    return next((growth for growth in StepCounter(pattern).growth(mode) if not growth.is_linear), None)


@pytest.mark.parametrize("share", range(8))
def test_patterns_of_modules_take_linear_time(
    collected: tuple[list[SourcePattern], set[BuiltPattern]], share: int
) -> None:
    for name, pattern, mode in collected[0][share::8]:
        used = "chain" if name in CHAINED else mode
        growth = worst(pattern, used)
        assert growth is None, f"{name} ({used}): {pattern.pattern!r}: {growth}"


def test_built_patterns_take_linear_time(collected: tuple[list[SourcePattern], set[BuiltPattern]]) -> None:
    assert set(BUILT) == collected[1]
    for call, example in BUILT.items():
        if example is None:
            continue
        with recorded_patterns() as patterns:
            example()
        assert patterns, call
        for pattern in patterns:
            growth = worst(pattern, "search")
            assert growth is None, f"{call}: {pattern.pattern!r}: {growth}"


def test_every_chained_pattern_exists(collected: tuple[list[SourcePattern], set[BuiltPattern]]) -> None:
    assert {name for name, _, _ in collected[0]} >= CHAINED


@pytest.mark.parametrize(
    ("pattern", "mode"),
    [
        (r"(?:a+)+$", "match"),
        (r"(?:a|aa)+$", "fullmatch"),
        (r"(?:[A-Z]{2,}|[A-Z]?[a-z]+|[A-Z])+s?\d{0,4}$", "match"),
        (r"a*a*b", "match"),
        (r"\s*[:=]\s*\\*\"?(?:key)?\s*x{12,}", "match"),
        (r"(?:[A-Za-z0-9+/_-]{60,}\s{0,2})*[A-Za-z0-9+/_-]+={0,2}\s*$", "match"),
        (r"\s+$", "search"),
        (r"a++b", "search"),
        (r"<a.*?>", "search"),
        (r"\[begin[^\]\n]*\]", "search"),
        (r"eyJ\w{8,2000}\.", "search"),
        (r"\\(?!\\*n)|x", "search"),
        (r"(`+)[^`]*\1x", "search"),
    ],
)
def test_a_slow_pattern_is_found(pattern: str, mode: Mode) -> None:
    assert worst(re.compile(pattern), mode) is not None


@pytest.mark.parametrize(
    ("pattern", "mode"),
    [
        (r"a++b", "match"),
        (r"(?<!a)a++b", "search"),
        (r"[A-Za-z0-9+/_-]++(?:\s{1,2}+[A-Za-z0-9+/_-]++)*+={0,2}+\s*+\Z", "match"),
        (r"\[begin[^\]\n]*\]", "chain"),
        (r"eyJ\w{8,200}\.", "search"),
        (r"key-[a-f]{2,40}", "search"),
    ],
)
def test_a_fast_pattern_is_not_found(pattern: str, mode: Mode) -> None:
    assert worst(re.compile(pattern), mode) is None


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*?b|a+",
        r"(a|ab)(c|bcd)(d*)",
        r"(?:a|ab)*+c|ab",
        r"(?>a|ab)c|abd",
        r"(?<=a)b+?(?=c|$)",
        r"(?<!b)a{1,2}?b",
        r"(a*)(b)?(?(2)c|d)",
        r"(?i)(A)b?\1",
        r"^(?:ab?){2,3}$",
        r"(?:a?b?)*c",
        r"(?s).+?\Z|\bab",
        r"[^ab]+|(?:){0,2}a",
    ],
)
def test_the_counter_matches_as_re_does(pattern: str) -> None:
    compiled = re.compile(pattern)
    counter = StepCounter(compiled)
    texts = [""]
    for _ in range(5):
        texts += [text + sign for text in texts[-(4**5) :] for sign in "abc\n"]
    for text in dict.fromkeys(texts):
        for place in range(len(text) + 1):
            match, full = compiled.match(text, place), compiled.fullmatch(text, place)
            assert counter.end(text, place) == (match.end() if match else None), (text, place)
            assert counter.end(text, place, is_full=True) == (full.end() if full else None), (text, place)
