"""A conversation in a row of the list, and what is told of it above its preview."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.text import Text

from retold.agents import TITLES
from retold.archive.database import IndexDamagedError, RetoldError
from retold.export.text.numbers import money
from retold.export.text.search_results import hit_pieces
from retold.export.text.table import clean, fitted, project_name, short_number
from retold.export.text.times import age, moment
from retold.export.transcript import plural, transcript_lines
from retold.model.report import PICOS
from retold.search.dates import moment_of
from retold.search.listing import Scope, scopes
from retold.search.query import QuerySyntaxError
from retold.search.quick_find import Named, SessionCard, TitleMatch, by_name, joined
from retold.search.results import SearchResult
from retold.tui.data import (
    ArchiveQueries,
    StyledLine,
    answer,
    beginning,
    due,
    fates,
    found,
    is_plain,
    listed,
    unknown,
)
from retold.tui.widgets import styled

AGE, AGENT, PROJECT, PROMPTS, SPENT, MARK = 4, 6, 12, 4, 8, 2
NARROWEST = 8
IN_TEXT, LOST = "≡", "†"
"""Marks: found in the text; gone from its agent's home."""
_ROOM = 52
"""Narrower rows have no place for prompts and agent."""
StyledPieces = list[tuple[str, str]]


def heading(width: int) -> Text:
    """Return the names of the columns."""
    names = _columns("", "title", ("project", "agent", "asks", "spent", "age"), width)
    return styled([("faint", text) for _, text in names])


def row(match: TitleMatch, width: int, now: datetime) -> Text:
    """Return a conversation on one line."""
    card = match.card
    mark = IN_TEXT if not match.is_named else LOST if card.is_lost else ""
    project = project_name(card.project.root, card.project.hash, card.project.native_key)
    rest = (project, card.agent, str(card.counts.prompts), spent(card), age(card.ended_at, now))
    return styled(_columns(mark, _title(card), rest, width))


def _title(card: SessionCard) -> str:
    children = f" +{len(card.children)}" if card.children else ""
    return clean(card.title or "(no prompt is left)") + children


def _columns(mark: str, title: str, rest: tuple[str, str, str, str, str], width: int) -> StyledPieces:
    project, agent, prompts, cost, when = rest
    ends = [fitted(clean(project), PROJECT)]
    if width >= _ROOM:
        ends += [fitted(agent, AGENT), prompts.rjust(PROMPTS)]
    ends += [cost.rjust(SPENT), when.rjust(AGE)]
    used = MARK + PROJECT + SPENT + AGE + 3 + (AGENT + PROMPTS + 2 if width >= _ROOM else 0)
    room = max(NARROWEST, width - used)
    return [
        ("match" if mark else "plain", f"{mark:<{MARK}}"),
        ("plain", fitted(title, room)),
        ("faint", " " + " ".join(ends)),
    ]


def spent(card: SessionCard) -> str:
    """Return what it cost, or where that is unknown its tokens."""
    sign = "~" if card.usage.estimated else ""
    if card.cost_usd is not None:
        return sign + money(int(card.cost_usd * PICOS))
    return sign + short_number(card.usage.total)


def facts(card: SessionCard, fates: dict[str, int], now: datetime) -> Iterator[StyledPieces]:
    """Yield what is known of a conversation."""
    counts = card.counts
    yield [("title", clean(card.title or "(no prompt is left)"))]
    where = card.project.root or card.project.native_key or "nowhere known"
    yield [("faint", f"{card.agent} · {where}")]
    began = moment_of(card.started_at)
    when = f"{moment(began) if began else '-'}, {age(card.ended_at, now)} ago"
    yield [("faint", f"{when} · {', '.join(card.models) or 'no model'}")]
    failed = f", {counts.tool_errors} failed" if counts.tool_errors else ""
    told = f"{plural(counts.prompts, 'prompt')}, {plural(counts.messages, 'message')}, {plural(counts.tool_calls, 'tool call')}{failed}"
    yield [("faint", f"{told} · {short_number(card.usage.total)} tokens, {spent(card)}")]
    if card.tags:
        yield [("faint", "tags: " + ", ".join(card.tags))]
    yield from _warnings(card, fates)


def _warnings(card: SessionCard, fates: dict[str, int]) -> Iterator[StyledPieces]:
    if fates:
        told = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
        yield [("match", f"{told}: told in the transcript, gone from what its agent holds")]
    if card.kind == "prompts-only":
        yield [("bad", "only the prompts are left")]
    elif card.is_lost:
        yield [("bad", f"{LOST} gone from its agent's home; the archive has it: R restores it")]
    if card.children:
        yield [("faint", f"with {plural(len(card.children), 'subagent')}")]


ENTRIES, LINES = 8, 80
"""How much is shown."""
LONGEST = 600


def preview(archive: ArchiveQueries, match: TitleMatch, now: datetime) -> list[StyledLine]:
    """Return the preview; of a conversation that was found by its text, what was said there."""
    key = match.card.key
    return [*facts(match.card, fates(archive, key), now), *_said(archive, match)]


def _said(archive: ArchiveQueries, match: TitleMatch) -> Iterator[StyledLine]:
    for hit in match.hits:
        yield []
        yield [("bar", "▸ "), *hit_pieces(hit)]
    first = max(0, match.hits[0].seq) if match.hits else 0
    session = beginning(archive, match.card.key, first, ENTRIES)
    if session is None:
        return
    if first:
        yield []
        yield [("faint", "… from there on:")]
    lines = [line for _, entry in transcript_lines(session) for line in entry]
    for style, text in lines[:LINES]:
        yield [(style, text if len(text) <= LONGEST else text[:LONGEST] + "…")]


FIRST = 100
"""Conversations that are asked for first: a screen full, while the others come."""
PAUSE = 0.08
"""Seconds without a key after which the text is searched."""


class ListFinder:
    """All that is known, and what of it answers what was typed last."""

    def __init__(self, archive: ArchiveQueries) -> None:
        self.archive = archive
        self.scopes: Sequence[Scope] = scopes((), archive.here)
        self.scope = self.scopes[0]
        self.typed = ""
        self.note = ""
        """What there is to say about what was typed."""
        self.is_searching = False
        self._known: list[Named] = []
        self._cards: dict[str, SessionCard] = {}
        self._said: list[SearchResult] = []
        self._named: tuple[list[TitleMatch], list[TitleMatch]] = ([], [])

    async def load(self, limit: int | None = None) -> None:
        """Learn which conversations there are in the scope."""
        scope = self.scope
        self._known = await answer(lambda: listed(self.archive, scope, limit))
        self._cards = {one.card.key: one.card for one in self._known}
        self._find_names()
        if scope.folder is None:
            self.scopes = scopes({one.card.project.root for one in self._known}, self.archive.here)

    def turn_scope(self) -> None:
        """Take the next scope."""
        names = [scope.name for scope in self.scopes]
        place = names.index(self.scope.name) if self.scope.name in names else -1
        self.scope = self.scopes[(place + 1) % len(self.scopes)]

    def type(self, typed: str) -> None:
        """Take what was typed; answers to what was typed before are void."""
        self.typed, self.note, self._said = typed.strip(), "", []
        self.is_searching = bool(self.typed)
        self._find_names()

    def _find_names(self) -> None:
        is_by_name = not self.typed or is_plain(self.typed)
        self._named = by_name(self._known, self.typed) if is_by_name else ([], [])

    async def search(self) -> None:
        """Search the text, if nobody types on."""
        typed, scope = self.typed, self.scope
        if not typed:
            return
        await asyncio.sleep(PAUSE)
        try:
            said = await answer(lambda: found(self.archive, scope, typed))
        except QuerySyntaxError as unclear:
            said, self.note = [], unclear.message
        except IndexDamagedError:
            said, self.note = [], "the text index is damaged: `retold sync --reindex` makes it anew"
        except (RetoldError, OSError, ValueError) as error:
            said, self.note = [], str(error)
        if not said and not self.note:
            self.note = await answer(lambda: unknown(self.archive, typed))
        if (typed, scope) == (self.typed, self.scope):
            self._said, self.is_searching = said, False

    @property
    def total(self) -> int:
        """How many conversations there are."""
        return len(self._known)

    def matches(self) -> list[TitleMatch]:
        """Return what answers, the best first."""
        return joined(self._named, self._said, self._cards)


def status_line(finder: ListFinder, found: Sequence[TitleMatch], said: str) -> Text:
    """Return what was found, or what there is to say."""
    if said:
        return styled([("match", said)])
    if finder.note:
        return styled([("bad", finder.note)])
    if not finder.typed:
        return styled([("faint", f"{plural(finder.total, 'conversation')}, the newest first")])
    text = sum(1 for match in found if not match.is_named)
    told = f"{len(found) - text} by name, {text} more in the text ≡" if found else "nothing"
    return styled([("faint", f"{told}{', searching …' if finder.is_searching else ''}")])


def warning(archive: ArchiveQueries) -> str:
    """Return what goes soon, in a line; nothing, if nothing does."""
    told = [
        f"{TITLES.get(agent, agent)} {count:,} {f'in {days} d' if days else 'next start'}"
        for agent, count, days in due(archive)
    ]
    return f"soon deleted, archived: {', '.join(told)} (^d)" if told else ""


def keys_line(keys: str, width: int) -> Text:
    """Return the keys that there is room for, each before what it does."""
    line = Text(no_wrap=True, end="")
    for told in keys.split("|"):
        key, _, deed = told.partition(" ")
        if line.cell_len + len(told) <= width:
            line.append(key, "bold").append(f" {deed}  ", "dim")
    return line
