"""The list of sessions: its rows, the preview, and the finder that matches titles and searches the text."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.text import Text

from retold.agents import TITLES
from retold.archive.database import IndexDamagedError, RetoldError
from retold.archive.sync_state import DAY, find_expiring
from retold.export.text.amounts import format_usd
from retold.export.text.formatting import (
    StyledLine,
    clean_name,
    fit_width,
    format_age,
    format_moment,
    format_short_number,
    plural,
    project_name,
)
from retold.export.text.search_results import format_hit
from retold.export.transcript import format_entries
from retold.search.dates import to_datetime
from retold.search.listing import FolderScope, list_scopes
from retold.search.query import QuerySyntaxError
from retold.search.quick_find import SessionCard, TitleEntry, TitleMatch, match_titles, merge_matches
from retold.search.results import SearchResult
from retold.tui.data import (
    ArchiveQueries,
    is_plain,
    load_entries,
    load_fate_counts,
    load_titles,
    run_in_thread,
    search_text,
    unknown_in_query,
)
from retold.tui.widgets import make_text

AGE, AGENT, PROJECT, PROMPTS, SPENT, MARK = 4, 6, 12, 4, 8, 2
NARROWEST = 8
IN_TEXT, LOST = "≡", "†"
"""Marks of sessions: found by their text; deleted from the agent's home."""
GUTTER = "┆ "
"""Stands before entries that the agent's resume would not send; their heading names the fate."""
_ROOM = 52
"""Columns of a row that has room for prompts and agent."""


def column_headings(width: int) -> Text:
    """Return the names of the columns."""
    names = _columns("", "title", ("project", "agent", "asks", "spent", "age"), width)
    return make_text([("faint", text) for _, text in names])


def format_row(match: TitleMatch, width: int, now: datetime) -> Text:
    """Return a session on one line."""
    card = match.card
    mark = IN_TEXT if not match.has_title_match else LOST if card.is_lost else ""
    project = project_name(card.project.root, card.project.hash, card.project.native_key)
    rest = (
        project,
        card.agent,
        str(card.counts.prompts),
        format_spending(card),
        format_age(card.ended_at, now),
    )
    children = f" +{len(card.children)}" if card.children else ""
    title = clean_name(card.title or "(no prompt is left)") + children
    return make_text(_columns(mark, title, rest, width))


def _columns(mark: str, title: str, rest: tuple[str, str, str, str, str], width: int) -> StyledLine:
    project, agent, prompts, cost, when = rest
    ends = [fit_width(clean_name(project), PROJECT)]
    if width >= _ROOM:
        ends += [fit_width(agent, AGENT), prompts.rjust(PROMPTS)]
    ends += [cost.rjust(SPENT), when.rjust(AGE)]
    used = MARK + PROJECT + SPENT + AGE + 3 + (AGENT + PROMPTS + 2 if width >= _ROOM else 0)
    room = max(NARROWEST, width - used)
    return [
        ("match" if mark else "plain", f"{mark:<{MARK}}"),
        ("plain", fit_width(title, room)),
        ("faint", " " + " ".join(ends)),
    ]


def format_spending(card: SessionCard) -> str:
    """Return the cost, or the tokens if it is unknown."""
    sign = "~" if card.usage.estimated else ""
    if card.cost_usd is not None:
        return sign + format_usd(card.cost_usd)
    return sign + format_short_number(card.usage.total)


def session_facts(card: SessionCard, fates: dict[str, int], now: datetime) -> Iterator[StyledLine]:
    """Yield the facts of a session."""
    counts = card.counts
    yield [("title", clean_name(card.title or "(no prompt is left)"))]
    where = card.project.root or card.project.native_key or "nowhere known"
    yield [("faint", f"{card.agent} · {where}")]
    began = to_datetime(card.started_at)
    when = f"{format_moment(began) if began else '-'}, {format_age(card.ended_at, now)} ago"
    yield [("faint", f"{when} · {', '.join(card.models) or 'no model'}")]
    failed = f", {counts.tool_errors} failed" if counts.tool_errors else ""
    total = ", ".join(
        (
            plural(counts.prompts, "prompt"),
            plural(counts.messages, "message"),
            plural(counts.tool_calls, "tool call"),
        )
    )
    tokens = f"{format_short_number(card.usage.total)} tokens, {format_spending(card)}"
    yield [("faint", f"{total}{failed} · {tokens}")]
    if card.tags:
        yield [("faint", "tags: " + ", ".join(card.tags))]
    yield from _warnings(card, fates)


def _warnings(card: SessionCard, fates: dict[str, int]) -> Iterator[StyledLine]:
    if fates:
        counts = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
        yield [("match", f"{counts}: told in the transcript, gone from what its agent holds")]
    if card.kind == "prompts-only":
        yield [("bad", "only the prompts are left")]
    elif card.is_lost:
        yield [("bad", f"{LOST} gone from its agent's home; the archive has it: R restores it")]
    if card.children:
        yield [("faint", f"with {plural(len(card.children), 'subagent')}")]


ENTRIES, LINES = 8, 80
"""Entries and lines of a preview."""
LONGEST = 600


def load_preview(archive: ArchiveQueries, match: TitleMatch, now: datetime) -> list[StyledLine]:
    """Return the facts of a session, its hits, and the transcript from the first hit on."""
    key = match.card.key
    return [*session_facts(match.card, load_fate_counts(archive, key), now), *_preview_text(archive, match)]


def _preview_text(archive: ArchiveQueries, match: TitleMatch) -> Iterator[StyledLine]:
    for hit in match.hits:
        yield []
        yield [("bar", "▸ "), *format_hit(hit)]
    first = max(0, match.hits[0].seq) if match.hits else 0
    session = load_entries(archive, match.card.key, first, ENTRIES)
    if session is None:
        return
    if first:
        yield []
        yield [("faint", "… from there on:")]
    lines = [line for entry in format_entries(session) for line in entry.lines]
    for style, text in lines[:LINES]:
        yield [(style, text if len(text) <= LONGEST else text[:LONGEST] + "…")]


FIRST_TITLES = 100
"""Sessions that are loaded first: a screenful."""
PAUSE = 0.08
"""Seconds without a key after which the text is searched."""


class ListFinder:
    """Finds sessions for the typed text: by title at once, and by text after a pause."""

    def __init__(self, archive: ArchiveQueries) -> None:
        self.archive = archive
        self.scopes: Sequence[FolderScope] = list_scopes((), archive.here)
        self.scope = self.scopes[0]
        self.typed = ""
        self.note = ""
        """A sentence about the typed query, such as a syntax error."""
        self.is_searching = False
        self._titles: list[TitleEntry] = []
        self._cards: dict[str, SessionCard] = {}
        self._results: list[SearchResult] = []
        self._matches: tuple[list[TitleMatch], list[TitleMatch]] = ([], [])

    async def load(self, limit: int | None = None) -> None:
        """Load the titles of the sessions in scope."""
        scope = self.scope
        self._titles = await run_in_thread(lambda: load_titles(self.archive, scope, limit))
        self._cards = {one.card.key: one.card for one in self._titles}
        self._match_titles()
        if scope.folder is None:
            self.scopes = list_scopes({one.card.project.root for one in self._titles}, self.archive.here)

    def next_scope(self) -> None:
        """Switch to the next scope."""
        names = [scope.name for scope in self.scopes]
        place = names.index(self.scope.name) if self.scope.name in names else -1
        self.scope = self.scopes[(place + 1) % len(self.scopes)]

    def type(self, typed: str) -> None:
        """Take the typed text; results for the text before are dropped."""
        self.typed, self.note, self._results = typed.strip(), "", []
        self.is_searching = bool(self.typed)
        self._match_titles()

    def _match_titles(self) -> None:
        is_by_title = not self.typed or is_plain(self.typed)
        self._matches = match_titles(self._titles, self.typed) if is_by_title else ([], [])

    async def search(self) -> None:
        """Search the text, unless another key is pressed first."""
        typed, scope = self.typed, self.scope
        if not typed:
            return
        await asyncio.sleep(PAUSE)
        try:
            results = await run_in_thread(lambda: search_text(self.archive, scope, typed))
        except QuerySyntaxError as unclear:
            results, self.note = [], unclear.message
        except IndexDamagedError:
            results, self.note = [], "the text index is damaged: `retold sync --reindex` rebuilds it"
        except (RetoldError, OSError, ValueError) as error:
            results, self.note = [], str(error)
        if not results and not self.note:
            self.note = await run_in_thread(lambda: unknown_in_query(self.archive, typed))
        if (typed, scope) == (self.typed, self.scope):
            self._results, self.is_searching = results, False

    @property
    def total(self) -> int:
        """The number of sessions in scope."""
        return len(self._titles)

    def matches(self) -> list[TitleMatch]:
        """Return the sessions that match, the best first."""
        return merge_matches(self._matches, self._results, self._cards)


def status_line(finder: ListFinder, matches: Sequence[TitleMatch], note: str) -> Text:
    """Return the status line: a note, or the number of matches."""
    if note:
        return make_text([("match", note)])
    if finder.note:
        return make_text([("bad", finder.note)])
    if not finder.typed:
        return make_text([("faint", f"{plural(finder.total, 'conversation')}, the newest first")])
    text = sum(1 for match in matches if not match.has_title_match)
    counts = f"{len(matches) - text} by name, {text} more in the text ≡" if matches else "nothing"
    return make_text([("faint", f"{counts}{', searching …' if finder.is_searching else ''}")])


def deletion_warning(archive: ArchiveQueries) -> str:
    """Return a line about sessions that agents will delete soon; empty if there are none."""
    with archive.open() as store:
        expiring = [
            (one.agent, one.count, max(0, int(-(-one.seconds // DAY)))) for one in find_expiring(store)
        ]
    parts = [
        f"{TITLES.get(agent, agent)} {count:,} {f'in {days} d' if days else 'next start'}"
        for agent, count, days in expiring
    ]
    return f"soon deleted, archived: {', '.join(parts)} (^d)" if parts else ""


def keys_line(keys: str, width: int) -> Text:
    """Return as many keys as fit, each before its action."""
    line = Text(no_wrap=True, end="")
    for text in keys.split("|"):
        key, _, action = text.partition(" ")
        if line.cell_len + len(text) <= width:
            line.append(key, "bold").append(f" {action}  ", "dim")
    return line
