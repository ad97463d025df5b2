"""Reports of invented work, for tests of how reports are shown."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from retold.model.report import Basis, Line, Overview, ReportRequest, Spend, ToolFigures, TouchedFile

INPUT, CACHED, OUTPUT = 1_250_000, 125_000, 10_000_000
"""Prices per token, in picodollars."""
NOTHING = Spend()
HOSTILE = (
    "",
    " \n\t ",
    "\x1b[2J\x1b[31mred\x07",
    "line one\nline two\r\nthree",
    "%s %d %(x)s {0} {x!r}",
    "x" * 10_000,
    "漢字" * 5_000,
    "\u202etxt.exe\u2066 \u200f\u200e",
    "e" + "\u0301" * 10_000,
    "👩‍👩‍👧‍👦 family ❤️ 🏳️‍🌈",
    '=HYPERLINK("http://x","y")',
    "+1+1",
    "-2",
    "@SUM(A1)",
    "\t=1",
    '"quoted", and\n=more',
    "\ud800 alone",
    "\u2028\u2029\x85\xa0",
    "/",
    "\\\\server\\share\\",
)
"""Names with control characters, formulas or extreme lengths, as a transcript may hold them."""


def spend(  # noqa: PLR0913 - one parameter per figure
    requests: int,
    fresh: int,
    cached: int = 0,
    output: int = 0,
    reasoning: int | None = None,
    *,
    is_priced: bool = True,
    unpriced: int = 0,
) -> Spend:
    """Return the sum of some requests; `fresh` is the input that was not in the cache."""
    figures = {
        "input": fresh + cached,
        "cached": cached,
        "cache_write": 0,
        "output": output,
        "reasoning": reasoning,
        "tool": None,
        "total": fresh + cached + output + (reasoning or 0),
        "cache_write_1h": None,
    }
    picos = fresh * INPUT + cached * CACHED + (output + (reasoning or 0)) * OUTPUT
    return Spend(requests, figures, picos if is_priced else None, unpriced if is_priced else requests)


def unpriced(of: Spend) -> Spend:
    return Spend(of.requests, of.figures, None, of.requests)


def days(first: date, number: int) -> Iterator[Line]:
    """Yield a report line for some of the `number` days from `first` on, with varying amounts of work."""
    for place in range(number):
        day = first + timedelta(place)
        much = (place * 37 % 11) * (place % 7 < 5) * (1 + place // 40)
        if much:
            measured = spend(much * 4, much * 61_000, much * 233_000, much * 2_100, much * 900)
            yield Line(
                day.isoformat(),
                measured,
                NOTHING,
                sessions=1 + much % 4,
                prompts=much,
                active_seconds=much * 421,
            )


def models() -> list[Line]:
    names = ("gemini-2.5-pro", "gemini-2.5-flash", "claude-opus-4-5", "gpt-5-codex")
    known = [
        Line(
            name,
            spend(900 // place, 42_000_000 // place**2, 90_000_000 // place**2, 800_000 // place**2),
            NOTHING,
        )
        for place, name in enumerate(names, start=1)
    ]
    small = [Line(f"tiny-{place}", spend(place, 900 * place, 0, 12), NOTHING) for place in range(1, 7)]
    return [*known, *small, Line("home-grown-7b", spend(12, 52_000, 0, 900, is_priced=False), NOTHING)]


def projects() -> list[Line]:
    roots = ("/home/ann/dev/letterbox", "/home/ann/work/letterbox", "/home/ann/dev/天気予報", "C:\\dev\\kite")
    lines = [
        Line(root, spend(120 // place, 9_000_000 // place, 0, 70_000 // place), NOTHING, sessions=9 // place)
        for place, root in enumerate(roots, start=1)
    ]
    guessed = Line("9fb7" * 16, NOTHING, spend(3, 41_000, 0, 700), sessions=2)
    return [*lines, guessed]


def tools() -> list[ToolFigures]:
    return [
        ToolFigures("run_shell_command", "shell_exec", 312, errors=41, retries=17, timed=300, seconds=2791.4, slowest_seconds=611.2),
        ToolFigures("read_file", "file_read", 1204, errors=3, retries=0, timed=1204, seconds=31.2, slowest_seconds=0.84),
        ToolFigures("replace", "file_edit", 240, errors=22, retries=19, timed=240, seconds=12.0, slowest_seconds=2.5),
        ToolFigures("mcp__weather__forecast_for_the_week", "mcp", 4, errors=4),
        ToolFigures("ask_user", "ask_user", 2),
    ]  # fmt: skip


def tool_lines(of: Iterable[ToolFigures]) -> list[Line]:
    return [
        Line(
            tool.name,
            NOTHING,
            NOTHING,
            tool_calls=tool.calls,
            tool_errors=tool.errors,
            tool_retries=tool.retries,
        )
        for tool in of
    ]


def basis() -> Basis:
    return Basis(
        "Europe/Berlin",
        prices="genai-prices 0.2.1",
        priced_at="2026-05-01",
        unpriced={"home-grown-7b": 12},
        under_recorded={"gemini": 14},
    )


def sample_overview(number: int = 200, *, is_priced: bool = True) -> Overview:
    worked = list(days(date(2025, 9, 4), number))
    measured = sum((line.measured for line in worked), spend(12, 52_000, 0, 900, is_priced=False))
    by_model, by_project = models(), projects()
    if not is_priced:
        measured = unpriced(measured)
        worked, by_model, by_project = (
            [Line(line.of, unpriced(line.measured), NOTHING) for line in lines]
            for lines in (worked, by_model, by_project)
        )
    total = Line(
        "",
        measured,
        spend(3, 41_000, 0, 700),
        sessions=214,
        prompts=1931,
        tool_calls=1762,
        tool_errors=70,
        tool_retries=36,
        active_seconds=148_320,
        compactions=6,
    )
    files = [
        TouchedFile("src/letterbox/parser.py", 41, 9),
        TouchedFile("/etc/hosts", 1, 1),
        TouchedFile("README.md", 12, None),
    ]
    return Overview(
        total,
        basis(),
        since="2025-09-04",
        until=(date(2025, 9, 4) + timedelta(number - 1)).isoformat(),
        days=worked,
        models=by_model,
        projects=by_project,
        tools=tools(),
        files=files,
    )


def request(
    fresh: int, cached: int, output: int, *, second: int = 0, estimated: bool = False
) -> ReportRequest:
    """Return a request with its price and the parts of the calculation."""
    made = spend(1, fresh, cached, output)
    return ReportRequest(
        "gemini:session-2026-01-27T15-21-a82545c4",
        "gemini",
        made.figures,
        message=f"m{second}",
        model="gemini-2.5-pro",
        at=datetime(2026, 1, 27, 15, 21, second, tzinfo=UTC),
        estimated=estimated,
        picos=made.picos,
        parts=(("input", fresh, INPUT), ("cached", cached, CACHED), ("output", output, OUTPUT)),
    )


def plain_text(lines: Iterable[Sequence[tuple[str, str]]]) -> str:
    """Return styled lines as plain text."""
    return "\n".join("".join(piece for _, piece in line) for line in lines)
