"""The query as people type it, against the real FTS5."""

import re

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.archive.index.tokenizer import find_part_spans, fold, prepare_text, query_words, tokenize
from retold.search.query import (
    Clause,
    Query,
    QuerySyntaxError,
    Term,
    exclusion_expression,
    match_expression,
    needs_verification,
    parse_query,
    parse_unfinished,
    single_words,
)

TOKENIZE = 'tokenize="unicode61 remove_diacritics 2"'


def shown(query: Query) -> str:
    """Return a query as it would have to be typed without shortcuts."""
    clauses = [
        "-" * clause.is_negated + " OR ".join(f"{term.kind}<{term.text}>" for term in clause.alternatives)
        for clause in query.clauses
    ]
    return " ".join(
        clauses + ["-" * field.is_negated + f"{field.name}={field.value}" for field in query.fields]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time zone", "word<time> word<zone>"),
        ('"time zone" zon*', "phrase<time zone> prefix<zon>"),
        ('"two wor"* x', "prefix<two wor> word<x>"),
        ("a b OR c d", "word<a> word<b> OR word<c> word<d>"),
        ('a OR "b c" OR d*', "word<a> OR phrase<b c> OR prefix<d>"),
        ("a or b", "word<a> word<or> word<b>"),
        ('a "OR" -OR', "word<a> phrase<OR> -word<OR>"),
        ('x -y -"a b" -z* -tool:shell', "word<x> -word<y> -phrase<a b> -prefix<z> -tool=shell"),
        ("“time zone” „so“ «la» \uff02x\uff02", "phrase<time zone> phrase<so> phrase<la> phrase<x>"),
        ('"it is “so” here"', "phrase<it is “so” here>"),
        ('say"so" 5" it\'s', 'word<say"so"> word<5"> word<it\'s>'),
        ('"a b"c', "phrase<a b> word<c>"),
        (
            "http://x std::vector C:\\dir note:x",
            "word<http://x> word<std::vector> word<C:\\dir> word<note:x>",
        ),
        (
            "git push --force -> x",
            "word<git> word<push> word<--force> word<->> word<x>",
        ),
        ("project:x", "project=x"),
        ('PROJECT:"My Thing" Is:ERROR', "project=My Thing is=error"),
        ("since:7d until:2026-01-27", "after=7d before=2026-01-27"),
        ("after:yesterday role:User status:failure", "after=yesterday role=user status=failure"),
        ("agent:Codex model:m file:a/b.py tag:t home:h", "agent=codex model=m file=a/b.py tag=t home=h"),
        ("-is:live", "-is=live"),
        ("-word project:x", "-word<word> project=x"),
        ("  \n a\t", "word<a>"),
        ("\u017fince:7d", "word<\u017fince:7d>"),
        ("++", "word<++>"),
    ],
)
def test_what_a_query_means(text: str, expected: str) -> None:
    assert shown(parse_query(text)) == expected


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", 0, "nothing to look for"),
        ("   ", 0, "nothing to look for"),
        ("-a -b", 0, "must occur"),
        ("a -", 2, "the minus at 2 stands alone"),
        ("a * b", 2, "the star at 2 stands alone"),
        ("-*", 1, "the star at 1 stands alone"),
        ("OR a", 0, "the OR at 0 has only one side"),
        ("a OR", 2, "the OR at 2 has only one side"),
        ("a OR OR b", 5, "the OR at 5 has only one side"),
        ("a OR -b", 2, "the OR at 2 joins more than words"),
        ("-a OR b c", 3, "the OR at 3 joins more than words"),
        ("a OR tool:x", 2, "the OR at 2 joins more than words"),
        ("a tool: shell", 2, "the field at 2 has no value"),
        ('a -tool:""', 3, "the field at 3 has no value"),
        ('a ""', 2, "the phrase at 2 is empty"),
        ('search "two words', 7, 'the quote at 7 is not closed: write "two words"'),
        ('tool:"shell', 5, "the quote at 5 is not closed"),
        ('"so”', 0, "the quote at 0 is not closed"),
        ("is:nothing", 0, "superseded, subagent, fork, lost, checkpoint, capture"),
        ("role:human", 0, "write one of user, assistant, system"),
        ("x agent:foo", 2, "write one of claude, codex, gemini"),
        ("status:ok", 0, "write one of success, failure, interrupted"),
        ("x after:soon", 2, "the date at 2 is none: write after:2026-01-27"),
        ("before:99999y", 0, "the date at 0 is none: write before:2026-01-27"),
    ],
)
def test_what_is_unclear(text: str, place: int, message: str) -> None:
    with pytest.raises(QuerySyntaxError, match=re.escape(message)) as unclear:
        parse_query(text)
    assert unclear.value.offset == place
    assert unclear.value.message == str(unclear.value)


def test_what_stands_where() -> None:
    query = parse_query('a -"b c" OR:x tool:y')
    assert [(term.text, term.offset) for clause in query.clauses for term in clause.alternatives] == [
        ("a", 0),
        ("b c", 3),
        ("OR:x", 9),
    ]
    assert [field.offset for field in query.fields] == [14]
    assert [term.text for term in query.terms] == ["a", "OR:x"]
    assert repr(query.terms[0]) == "Term(kind='word', offset=0, text='a')"


@pytest.mark.parametrize(
    ("text", "with_positions", "without"),
    [
        ("time", '"time"', '"time"'),
        ("a b OR c", '("a" AND ("b" OR "c"))', '("a" AND ("b" OR "c"))'),
        ('"time zone"', '"time zone"', '("time" AND "zone")'),
        ("a.b* x", '("a b" * AND "x")', '(("a" AND "b" *) AND "x")'),
        ("日本語", '"日本 本語"', '("日本" AND "本語")'),
        ("日", '"日" *', '"日" *'),
        ("a -b -c", '"a" NOT ("b" OR "c")', '"a" NOT ("b" OR "c")'),
        ('a -"b c"', '"a" NOT "b c"', '"a"'),
        ("a ++ -!!", '"a"', '"a"'),
        ("++", None, None),
        ("is:error -a", None, None),
        ('x"OR"y', '"x OR y"', '("x" AND "OR" AND "y")'),
    ],
)
def test_what_fts5_is_asked(text: str, with_positions: str | None, without: str | None) -> None:
    assert match_expression(parse_query(text), has_positions=True) == with_positions
    assert match_expression(parse_query(text), has_positions=False) == without


def test_what_must_not_occur_can_be_asked_alone() -> None:
    query = parse_query('is:error -a -"b c"')
    assert exclusion_expression(query, has_positions=True) == '("a" OR "b c")'
    assert exclusion_expression(query, has_positions=False) == '"a"'
    assert exclusion_expression(parse_query("a"), has_positions=True) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time zon*", False),
        ("日本", False),
        ('"time zone"', True),
        ("a_b", True),
        ('a -"b c"', True),
        ("日本語", True),
    ],
)
def test_what_needs_verifying(text: str, *, expected: bool) -> None:
    assert needs_verification(parse_query(text)) is expected


def tables(pages: list[str]) -> apsw.Connection:
    """Return pages in a table with positions, and in one without."""
    db = apsw.Connection(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE full USING fts5(text, content='', {TOKENIZE})")
    db.execute(f"CREATE VIRTUAL TABLE bare USING fts5(text, content='', detail=none, {TOKENIZE})")
    for name in ("full", "bare"):
        rows = [(number, prepare_text(page)) for number, page in enumerate(pages)]
        db.executemany(f"INSERT INTO {name}(rowid, text) VALUES (?, ?)", rows)  # noqa: S608 - our own names
    return db


def found(db: apsw.Connection, table: str, asked: str) -> set[int]:
    rows = db.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (asked,))  # noqa: S608 - our own names
    return {int(str(number)) for (number,) in rows}


@settings(max_examples=300)
@given(st.text(max_size=40) | st.text(alphabet='ab日 "*-OR:+“”.\ud800\x00', max_size=40))
def test_whatever_is_typed_is_a_query_or_unclear(text: str) -> None:
    try:
        query = parse_query(text)
    except QuerySyntaxError as unclear:
        assert 0 <= unclear.offset <= len(text)  # noqa: PT017 - it may be raised or not
        return
    db = tables(["a b", text])
    for has_positions, name in ((True, "full"), (False, "bare")):
        asked = match_expression(query, has_positions=has_positions)
        if asked is not None:
            found(db, name, asked)


def test_a_long_query_is_no_error() -> None:
    db = tables(["a b"])
    text = " ".join(["a b OR c", *(f"-w{number}" for number in range(2_000)), "a " * 2_000])
    for has_positions, name in ((True, "full"), (False, "bare")):
        asked = match_expression(parse_query(text), has_positions=has_positions)
        assert asked is not None
        assert found(db, name, asked) == {0}


WORDS = st.sampled_from(["time", "zone", "Zone", "zones", "Zürich", "日", "日本", "本日", "日本語", "a"])
PAGES = st.lists(st.lists(WORDS, max_size=7).flatmap(
    lambda words: st.lists(st.sampled_from([" ", "-", "_", "—"]), min_size=len(words), max_size=len(words)).map(
        lambda gaps: "".join([piece for pair in zip(words, gaps, strict=True) for piece in pair]))
), min_size=1, max_size=5)  # fmt: skip
TERMS = st.builds(
    Term,
    st.sampled_from(["word", "phrase", "prefix"]),
    st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
    st.just(0),
)
CLAUSES = st.builds(
    lambda terms, negated: Clause(tuple(terms[: 1 if negated else None]), is_negated=negated),
    st.lists(TERMS, min_size=1, max_size=2),
    st.booleans(),
)
QUERIES = st.lists(CLAUSES, min_size=1, max_size=4).map(lambda clauses: Query(tuple(clauses), ()))


def has(term: Term, page: str) -> bool:
    """Tell the slow way whether a page has a term."""
    pieces, is_open = query_words(term.text)
    words = [fold(piece) for piece in pieces]
    there = tokenize(page)
    ends = [there[place : place + len(words)] for place in range(len(there) - len(words) + 1)]
    if is_open or term.kind == "prefix":
        return any(end[:-1] == words[:-1] and end[-1].startswith(words[-1]) for end in ends)
    return words in ends


def fits(query: Query, page: str) -> bool:
    return all(
        any(has(term, page) for term in clause.alternatives) != clause.is_negated for clause in query.clauses
    )


@pytest.mark.slow
@settings(max_examples=300)
@given(PAGES, QUERIES)
def test_fts5_finds_what_a_slow_search_finds(pages: list[str], query: Query) -> None:
    asked = match_expression(query, has_positions=True)
    if asked is None:
        return
    expected = {number for number, page in enumerate(pages) if fits(query, page)}
    db = tables(pages)
    assert found(db, "full", asked) == expected
    asked = match_expression(query, has_positions=False)
    assert asked is not None
    if needs_verification(query):
        assert found(db, "bare", asked) >= expected
    else:
        assert found(db, "bare", asked) == expected


def test_a_name_is_found_by_its_parts_and_as_a_whole() -> None:
    assert find_part_spans("timeZone")
    db = tables(["the timeZone of it", "the time of it"])
    names = {"zone": ["timezone"], "time": ["timezone"]}
    for text, expected in {
        "zone": {0},
        "timezone": {0},
        "timeZone": {0},
        "time": {0, 1},
        "zone -time": {0},
        '"zone of"': set(),
    }.items():
        for table, has_positions in (("full", True), ("bare", False)):
            asked = match_expression(parse_query(text), has_positions=has_positions, names=names)
            assert asked is not None
            assert found(db, table, asked) == expected, text
    assert single_words(parse_query('Zone "a b" pre* x_y -not')) == {"zone"}


@pytest.mark.parametrize(
    ("typed", "kinds"),
    [
        ("quok", ["prefix"]),
        ("two quok", ["word", "prefix"]),
        ("qu", ["word"]),
        ("quok ", ["word"]),
        ('"two words"', ["phrase"]),
        ("two -quok", ["word"]),
        ("quok project:alm", ["word"]),
        ("quok project:quok", ["word"]),
        ("two qu", ["word", "word"]),
        ("std::vector<", ["word"]),
        ("one OR quok", ["word", "prefix"]),
    ],
)
def test_the_last_word_may_go_on_while_it_is_typed(typed: str, kinds: list[str]) -> None:
    assert [term.kind for term in parse_unfinished(typed).terms] == kinds
