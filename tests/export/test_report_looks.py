"""What people read of a report: reviewed as prose, kept as snapshots."""

import io
from collections.abc import Iterable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from retold.cli.console import ANSI_CODES, Console
from retold.export.text.formatting import text_width
from retold.export.text.report_overview import format_overview
from retold.export.text.report_table import format_cost, format_explanation, format_report
from retold.model.report import Basis, Line, Overview, ReportRequest, Spend, ToolFigures, TouchedFile
from support.sample_reports import (
    HOSTILE,
    NOTHING,
    basis,
    days,
    models,
    plain_text,
    projects,
    request,
    sample_overview,
    spend,
    tool_lines,
    tools,
)

WIDTHS = (120, 80, 40)
BY = ("day", "week", "month", "model", "project", "agent", "tool", "session")
NUMBERS = st.none() | st.integers(0, 10**15)
SPENDS = st.builds(
    Spend,
    st.integers(0, 10**9),
    st.fixed_dictionaries(dict.fromkeys(NOTHING.figures, NUMBERS)),
    st.none() | st.integers(0, 10**22),
    st.integers(0, 10**6),
)
LINES = st.builds(
    Line,
    st.text() | st.dates().map(str),
    SPENDS,
    SPENDS,
    sessions=NUMBERS,
    prompts=NUMBERS,
    tool_calls=NUMBERS,
    tool_errors=NUMBERS,
    tool_retries=NUMBERS,
    active_seconds=NUMBERS,
    compactions=NUMBERS,
)
TOOLS = st.builds(
    ToolFigures,
    st.text(),
    st.just("other"),
    st.integers(0, 10**9),
    errors=NUMBERS,
    retries=NUMBERS,
    timed=st.integers(0, 10**9),
    seconds=st.none() | st.floats(0, 1e9),
    slowest_seconds=st.none() | st.floats(0, 1e9),
)
GROUNDS = st.builds(
    Basis,
    st.text(),
    prices=st.none() | st.text(),
    priced_at=st.none() | st.dates().map(str),
    unpriced=st.dictionaries(st.text(), st.integers(1, 10**9), max_size=12),
    under_recorded=st.dictionaries(st.text(), st.integers(1, 10**9), max_size=3),
)
LISTED = st.lists(LINES, max_size=12)


def too_wide(lines: Iterable[list[tuple[str, str]]], columns: int) -> list[str]:
    return [line for line in map(plain_text, ([line] for line in lines)) if text_width(line) > columns]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_period_reads_well(columns: int, snapshot: SnapshotAssertion) -> None:
    assert plain_text(format_overview(sample_overview(), columns)) == snapshot


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_short_period_without_prices_reads_well(columns: int, snapshot: SnapshotAssertion) -> None:
    assert plain_text(format_overview(sample_overview(9, is_priced=False), columns)) == snapshot


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("by", ["day", "model", "project", "session", "tool"])
def test_a_table_reads_well(by: str, columns: int, snapshot: SnapshotAssertion) -> None:
    work = list(days(date(2025, 12, 28), 9))
    lines = {
        "day": work,
        "model": models(),
        "project": projects(),
        "session": [
            Line("gemini:s-1", work[0].measured, NOTHING),
            Line("claude:2f", work[1].measured, NOTHING),
        ],
        "tool": tool_lines(tools()),
    }[by]
    told = format_report(
        lines,
        by,
        columns,
        basis=basis(),
        titles={"gemini:s-1": "Fold the paper kite, and tell why it does not fly"},
        tools={tool.name: tool for tool in tools()},
    )
    assert plain_text(told) == snapshot


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_arithmetic_reads_well(columns: int, snapshot: SnapshotAssertion) -> None:
    unpriced = spend(1, 900, 0, 12, is_priced=False)
    requests = [
        request(7_000, 2_000, 300),
        request(210_000, 0, 1_200, second=9),
        ReportRequest("claude:2f", "claude", unpriced.figures, model="home-grown-7b"),
        ReportRequest("codex:77", "codex", NOTHING.figures),
        request(4_000, 0, 90, second=12, estimated=True),
    ]
    requests[1].over = 200_000
    measured = spend(2, 217_000, 2_000, 1_500) + unpriced + Spend(1, unpriced=1)
    line = Line("2026-01-27", measured, spend(1, 4_000, 0, 90))
    assert plain_text(format_explanation(line, iter(requests), columns)) == snapshot


def test_a_price_is_the_sum_of_its_products_and_a_line_that_of_its_requests() -> None:
    line = Line("2026-01-27", spend(1, 7_000, 2_000, 300), NOTHING)
    told = plain_text(format_explanation(line, [request(7_000, 2_000, 300)], 120))
    assert "7,000 input x $1.25/M + 2,000 cached x $0.125/M + 300 output x $10/M = $0.01200" in told
    assert "sum: 1 request, 9,300 tokens, $0.01200\n  ✓ as in the report" in told


def test_what_does_not_add_up_is_told() -> None:
    wrong = request(7_000, 2_000, 300)
    assert wrong.picos
    wrong.picos += 1
    line = Line("2026-01-27", spend(1, 7_000, 2_000, 300), NOTHING)
    lines = list(format_explanation(line, [wrong], 120))
    assert [("bad", "    ✗ the products come to $0.01200")] in lines
    assert [("bad", "  ✗ the report says: 1 request, 9,300 tokens, $0.01200")] in lines
    assert "✓" not in plain_text(lines)


def test_a_request_that_is_missing_is_noticed_in_guesses_too() -> None:
    line = Line("2026-01-27", NOTHING, spend(2, 8_000, 0, 180))
    told = plain_text(format_explanation(line, [request(4_000, 0, 90, estimated=True)], 120))
    assert "sum: 0 requests, tokens unknown, no price\n  ✓ as in the report" in told
    assert (
        "estimated: 1 request, ~4,090 tokens, ~$0.00590\n  ✗ the report says: 2 requests, ~8,180 tokens"
        in told
    )


def test_requests_are_told_as_they_come() -> None:
    def endless() -> Iterable[ReportRequest]:
        while True:
            yield request(1, 1, 1)

    lines = format_explanation(Line("2026-01-27", NOTHING, NOTHING), endless(), 120)
    assert plain_text([next(lines) for _ in range(5)]).count("$0.000011375") == 2


def test_what_is_unknown_is_a_dash_and_never_nothing() -> None:
    lines = [Line("a", Spend(3, None, None, 3), NOTHING), Line("b", spend(2, 5), NOTHING)]
    told = plain_text(format_report(lines, "model", 80)).split("\n")
    assert told[1].split() == ["a", "3", "-", "-", "-", "-"]


def test_an_amount_that_is_not_all_has_a_plus_and_a_note_says_why() -> None:
    lines = [Line("a", spend(3, 800_000, unpriced=2), NOTHING), Line("b", spend(2, 1_600_000), NOTHING)]
    told = plain_text(
        format_report(lines, "day", 80, basis=Basis("UTC", unpriced={"odd": 1, "odder": 1}))
    ).split("\n")
    assert [line.split()[5] for line in told[1:4]] == ["$1.00+", "$2.00", "$3.00+"]
    assert told[1].index("$1.00") == told[2].index("$2.00")
    assert "+ no price for 2 requests: odd (1), odder (1)" in told


def test_where_nothing_has_a_price_bars_are_of_tokens() -> None:
    lines = [
        Line("a", spend(1, 800, is_priced=False), NOTHING),
        Line("b", spend(1, 400, is_priced=False), NOTHING),
    ]
    told = plain_text(format_report(lines, "model", 80)).split("\n")
    assert told[1].count("█") == 2 * told[2].count("█") > 0
    assert "no price for 2 requests" in told
    assert format_cost(lines[0].measured) == "-"


def test_guesses_stand_apart_and_are_marked() -> None:
    lines = [Line("a", spend(1, 800_000), spend(1, 8_000_000)), Line("b", spend(1, 800_000), NOTHING)]
    told = list(format_report(lines, "day", 80))
    measured, guessed = plain_text(told[:4]), told[4:7]
    assert "~" not in measured
    assert measured.split("\n")[-1].split()[-1] == "$2.00"
    assert plain_text(guessed).count("~$10.00") == 2
    assert {style for line in guessed for style, _ in line} == {"faint"}


def test_sessions_are_summed_only_by_who_counted_them() -> None:
    lines = [Line("a", spend(1, 8), NOTHING, sessions=2), Line("b", spend(1, 8), NOTHING, sessions=2)]
    total = Line("", spend(2, 16), NOTHING, sessions=3)
    assert plain_text(format_report(lines, "day", 80)).split("\n")[3].split()[:3] == ["total", "2", "-"]
    assert plain_text(format_report(lines, "day", 80, total=total)).split("\n")[3].split()[:3] == [
        "total",
        "2",
        "3",
    ]


def test_columns_drop_out_from_the_least_important() -> None:
    lines = [
        Line("2026-01-01", spend(9, 9_000, 9_000, 9, 9), NOTHING, sessions=2, active_seconds=60, tool_calls=7, tool_errors=1)
    ]  # fmt: skip
    order = ["cost", "tokens", "requests", "output", "input", "sessions", "cached", "reasoning", "active", "calls", "errors"]  # fmt: skip
    seen = []
    for columns in range(10, 160):
        shown = plain_text(format_report(lines, "day", columns)).split("\n")[0].split()[1:]
        assert set(shown) == set(order[: len(shown)])
        seen.append(len(shown))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, len(order))


def test_work_without_a_time_is_on_no_day_and_that_is_told() -> None:
    period = Overview(Line("", spend(4, 9), NOTHING), basis(), days=[Line("", spend(4, 9), NOTHING)])
    assert "on no day, for want of a time: 4 requests" in plain_text(format_overview(period, 80))


def test_of_nothing_little_is_told() -> None:
    told = plain_text(format_overview(Overview(Line("", NOTHING, NOTHING), Basis("UTC")), 80))
    assert told == "no day is known\nno price · no tokens · 0 requests\n\nno prices are known · days in UTC"


@pytest.mark.parametrize("columns", [20, 40, 80])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_a_line_or_reaches_the_terminal(name: str, columns: int) -> None:
    line = Line(name, spend(9, 9_000_000), spend(1, 9))
    tool = ToolFigures(name, "other", 9, slowest_seconds=9)
    period = Overview(
        line,
        Basis(name, prices=name, priced_at=name, unpriced={name: 1}, under_recorded={name: 1}),
        days=[line],
        models=[line],
        projects=[line],
        tools=[tool],
        files=[TouchedFile(name, 3, 1)],
    )
    asked = ReportRequest(
        name,
        name,
        line.measured.figures,
        message=name,
        model=name,
        picos=1,
        parts=[("input", 1, 1)],
    )
    told = [*format_overview(period, columns), *format_explanation(line, [asked], columns)]
    for by in BY:
        told += format_report(
            [line], by, columns, basis=period.basis, titles={name: name}, tools={name: tool}
        )
    out = io.StringIO()
    console = Console({}, out)
    for pieces in told:
        console.write_styled(pieces)
    written = out.getvalue()
    assert written == plain_text(told) + "\n"
    assert too_wide(told, columns) == []
    assert len(written.splitlines()) == len(told)
    written.encode()


@pytest.mark.slow
@given(LISTED, st.sampled_from(BY), st.integers(20, 140), st.none() | LINES, GROUNDS, TOOLS)
def test_no_line_of_a_table_is_wider_than_the_terminal(  # noqa: PLR0913 - one for each thing that is shown
    lines: list[Line], by: str, columns: int, total: Line | None, grounds: Basis, tool: ToolFigures
) -> None:
    took = {line.of: tool for line in lines[:1]}
    assert too_wide(format_report(lines, by, columns, total=total, basis=grounds, tools=took), columns) == []


@pytest.mark.slow
@given(
    LINES,
    LISTED,
    st.lists(TOOLS, max_size=12),
    st.lists(st.text(), max_size=6),
    GROUNDS,
    st.integers(20, 140),
)
def test_no_line_of_an_overview_is_wider_than_the_terminal(  # noqa: PLR0913 - one for each thing that is shown
    total: Line, lines: list[Line], used: list[ToolFigures], files: list[str], grounds: Basis, columns: int
) -> None:
    touched = [TouchedFile(path, 10**place, place) for place, path in enumerate(files)]
    period = Overview(total, grounds, days=lines, models=lines, projects=lines, tools=used, files=touched)
    assert too_wide(format_overview(period, columns), columns) == []


@given(LINES, st.lists(SPENDS, max_size=4), st.text(), st.integers(20, 140))
def test_no_line_of_the_arithmetic_is_wider_than_the_terminal(
    line: Line, spends: list[Spend], name: str, columns: int
) -> None:
    parts = [("input", 10**12, 10**9), ("cached", 1, 0)]
    requests = [
        ReportRequest(name, "x", one.figures, message=name, model=name, estimated=bool(place % 2), picos=one.picos, parts=parts)
        for place, one in enumerate(spends)
    ]  # fmt: skip
    assert too_wide(format_explanation(line, requests, columns), columns) == []


def test_every_style_is_known_to_the_console() -> None:
    told = [*format_overview(sample_overview(), 80), *format_report(projects(), "project", 80)]
    assert {style for line in told for style, _ in line} - {"plain"} <= set(ANSI_CODES)
