"""A conversation in a row of the list, and what is told of it above its preview."""

from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from retold.export.text.numbers import money
from retold.export.text.table import clean, fitted, project_name, short_number
from retold.export.text.times import age, moment
from retold.export.transcript import plural
from retold.model.report import PICOS
from retold.search.dates import moment_of
from retold.search.quick_find import SessionCard, TitleMatch
from retold.tui.words import styled

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
