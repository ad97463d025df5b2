"""Passages of answers: sessions cited by their keys, entries with their turns, and edits of files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from msgspec.structs import replace

from retold.archive.queries.listing import Condition, is_selected, key_condition, load_named_sessions
from retold.export.diffs import FileEdit, diffs_with_content, file_edits
from retold.export.redacted_session import RedactedSession, drop_cut_word
from retold.export.text.formatting import format_moment, plural
from retold.export.transcript import TranscriptOptions, fate_words, format_entry, format_heading, speaker_name
from retold.insights.past_answers import PastAnswer
from retold.insights.text import TurnPlace as Gleaned
from retold.mcp.reply import Passage, RequestError, head_line
from retold.mcp.tool import ToolContext
from retold.model.session import Entry, Message, Session, ToolCall
from retold.projects.matching import folder_name
from retold.reports.dashboards import FileActivity, find_files, report_changing_sessions
from retold.reports.stats import ReportQuery, parse_span
from retold.search.filters import Filters
from retold.search.pages import SessionSummary, load_result_rows, load_summaries, select_summaries
from retold.search.scan_job import ResultHit, ResultItem
from retold.sessions.slices import load_slices, turn_starts

_TITLE = 90


def cite(card: SessionSummary) -> str:
    """Return a session on one line: key, end, project and title."""
    facts = [
        card.key,
        utc_minute(card.ended_at),
        folder_name(card.root) if card.root else None,
        short_title(card.title),
    ]
    return " · ".join(fact for fact in facts if fact)


def cite_redacted(card: SessionSummary, redact: Callable[[str], str]) -> str:
    """Return the citation with the title redacted by a redactor that knows the whole session."""
    return cite(card if card.title is None else replace(card, title=redact(drop_cut_word(card.title) or "")))


def utc_minute(at: datetime | None) -> str | None:
    """Return a time to the minute in UTC, as keys have it."""
    return None if at is None else format_moment(at, is_utc=True)


def short_title(text: str | None) -> str | None:
    """Return a title cut between words, see `drop_cut_word`."""
    line = " ".join((text or "").split())
    return drop_cut_word(line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…")


_MOST = 10
"""Sessions that an ambiguous key lists."""
_LONGEST = 80


def is_within_reach(context: ToolContext, key: str) -> bool:
    """Return whether a session is within the scope."""
    return is_selected(context.store, key, context.scope.conditions())


def resolve_session(context: ToolContext, text: str) -> SessionSummary:
    """Return the session that a key, a native id or the start of either means.

    The error for a session beyond the scope is that for one that does not exist.
    """
    found = load_named_sessions(context.store, text, context.scope.conditions()) if text else []
    if len(found) > 1:
        keys = ", ".join(head_line(key) for _, key, _ in found[:_MOST])
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise RequestError(f"{text[:_LONGEST]!r} may be any of {keys}{more}: give a whole key")
    cards = load_summaries(context.store, [number for number, *_ in found])
    if not cards:
        raise RequestError(
            f"there is no session {text[:_LONGEST]!r}: search_history and recent_work tell keys"
        )
    return cards[0]


_WHOLE = "about it"
"""The place of a hit in a title or a tag."""


def is_result_hidden(context: ToolContext, holding: ResultItem) -> bool:
    """Return whether all hits are in redacted text. Such a result is left out, or an agent could guess secrets by searching."""
    if context.make_redactor is None:
        return False
    return bool(holding.hits) and not any(place.matches for place in holding.hits)


def format_places(context: ToolContext, key: str, holding: ResultItem) -> Iterator[str]:
    """Yield the hits of a result."""
    begins = turn_starts(context.store, holding.session, key)
    return (_line(begins, place) for place in holding.hits)


def _line(begins: Sequence[int], place: ResultHit) -> str:
    turn = f"turn {bisect_right(begins, place.seq)}" if place.seq >= 0 else _WHOLE
    who = place.tool or place.role
    fate = "" if place.fate == "live" else f" ({place.fate})"
    return f"{turn}{f', {who}' if who else ''}{fate}: {place.snippet}"


def turn_label(place: Gleaned) -> str:
    """Return a turn; entries before the first prompt belong to turn 1."""
    return f"turn {max(1, place.turn)}"


_MOST_CHILDREN = 20
"""Subagents that the heading lists; each is named by its call as well."""


def heading_passage(context: ToolContext, redacted: RedactedSession, turns: int) -> Iterator[Passage]:
    """Yield the facts of a session."""
    session = redacted.session
    if session is not None:
        title, *facts = [line.text for line in format_heading(session, is_utc=True)]
        lines = [f"{title}", *facts, *_more_facts(context, session, turns)]
        yield Passage(f"session {session.key}", "\n".join(lines), is_redacted=True)


def _more_facts(context: ToolContext, session: Session, turns: int) -> Iterator[str]:
    ended = f" · ended {utc_minute(session.ended_at)}" if session.ended_at else ""
    yield f"{session.agent} · {plural(turns, 'turn')} · {session.status}{ended}"
    if session.parent and is_within_reach(context, session.parent):
        yield f"part of {session.parent}"
    children = [key for key in session.children if is_within_reach(context, key)]
    shown, left = children[:_MOST_CHILDREN], len(children) - _MOST_CHILDREN
    if shown:
        yield "subagents: " + ", ".join(shown) + (f" and {left} more" if left > 0 else "")


def entry_passages(  # noqa: PLR0913 - a session, its context, and which part of it
    context: ToolContext,
    redacted: RedactedSession,
    begins: Sequence[int],
    options: TranscriptOptions,
    first: int,
    end: int | None,
) -> Iterator[Passage]:
    """Yield a passage for each entry that is shown; it counts for the hidden ones before it as well."""
    session = redacted.session
    if session is None:
        return
    skipped = 0
    for seq, entry in redacted.entries(first, end):
        lines = [line.text for line in format_entry(entry, options)]
        calls = [part for part in getattr(entry, "parts", ()) if isinstance(part, ToolCall)]
        children = [call.child for call in calls if call.child]
        lines += [f"  → subagent {key}" for key in children if is_within_reach(context, key)]
        if not lines:
            skipped += 1
            continue
        head = f"turn {max(bisect_right(begins, seq), 1)} · {_entry_head(entry, session.agent)}"
        yield Passage(head, "\n".join(lines), is_redacted=True, step=skipped + 1)
        skipped = 0


def _entry_head(entry: Entry, agent: str) -> str:
    name = speaker_name(entry, agent) if isinstance(entry, Message) else entry.kind
    fate, at = fate_words(entry), utc_minute(entry.at)
    return f"{name}{f' ({fate})' if fate else ''}{f' · {at}' if at else ''}"


Lines = Callable[[ToolContext, PastAnswer, SessionSummary], Iterator[str]]
"""Yields the lines of an answer about one session."""


def answer_passages(context: ToolContext, answers: Iterable[PastAnswer], lines: Lines) -> Iterator[Passage]:
    """Yield a passage for each answer; it counts for the hidden ones before it as well."""
    skipped = 0
    for answer in answers:
        if is_result_hidden(context, answer.result):
            skipped += 1
            continue
        for row in load_result_rows(context.store, [answer.result]):
            redacted = RedactedSession(context.store, row.summary.key, context.make_redactor)
            head = cite_redacted(row.summary, redacted.redact_text)
            text = redacted.redact_text("\n".join(lines(context, answer, row.summary)))
            yield Passage(head, text, is_redacted=True, step=skipped + 1)
            skipped = 0


_MOST_FILES = 50
"""Files that an ambiguous path lists."""
_MOST_EDITS = 40
"""Edits of one session that are shown."""
_AT_ONCE = 10
"""Sessions that are loaded at a time."""


def file_passages(context: ToolContext, path: str, sessions: Sequence[Condition]) -> Iterator[Passage]:
    """Yield the sessions that changed a file, or the files that an ambiguous path may mean."""
    filters = Filters()
    filters.sessions += sessions
    query = ReportQuery(context.store, filters, parse_span(None, None, is_utc=True))
    files = find_files(query, path, _MOST_FILES)
    if len(files) > 1:
        yield from islice(_files(files), context.first_passage, None)
    elif files:
        yield from _sessions(context, query, files[0])


def _files(files: list[FileActivity]) -> Iterator[Passage]:
    """Yield a list of files, each by a path that means no other."""
    names, ends = [file.name for file in files], _unique_ends([file.path for file in files])
    lines = [
        f"{file.name if names.count(file.name) == 1 else end}: {plural(file.changes, 'change')}"
        f" in {plural(file.sessions, 'conversation')}, last {utc_minute(file.last_at) or 'at no known time'}"
        for file, end in zip(files, ends, strict=True)
    ]
    yield Passage("Several files are meant: ask again with one of these paths", "\n".join(lines))


def _unique_ends(paths: Sequence[str]) -> list[str]:
    """Return the shortest unique end of each path: a whole path may have a name that is to stay hidden."""
    parts = [path.replace("\\", "/").split("/") for path in paths]
    deepest = max(map(len, parts))
    ends = [["/".join(part[-length:]) for part in parts] for length in range(1, deepest + 1)]
    return [
        next((same[place] for same in ends if same.count(same[place]) == 1), path)
        for place, path in enumerate(paths)
    ]


def _sessions(context: ToolContext, query: ReportQuery, file: FileActivity) -> Iterator[Passage]:
    """Yield the sessions that changed a file, the newest first."""
    place = context.first_passage
    while found := report_changing_sessions(query, file.path, _AT_ONCE, place):
        for changer in found:
            for card in select_summaries(context.store, [key_condition(changer.key)], 1):
                redacted = RedactedSession(context.store, card.key, context.make_redactor)
                head = f"{cite_redacted(card, redacted.redact_text)} · {file.name}"
                yield Passage(head, _edits(context, card, redacted, file.path), is_redacted=True)
        place += len(found)


def _edits(context: ToolContext, card: SessionSummary, redacted: RedactedSession, path: str) -> str:
    """Return the changes that a session made to a file, call by call."""
    edits = file_edits(load_slices(context.store, card.key), path)
    begins = turn_starts(context.store, card.session, card.key)
    texts = [_edit(begins, redacted, edit) for edit in islice(edits, _MOST_EDITS)]
    left = sum(1 for _ in edits)
    more = [f"{plural(left, 'more change')}: read_session with tools `full` tells them"] if left else []
    return "\n\n".join([*texts, *more])


def _edit(begins: Sequence[int], redacted: RedactedSession, edit: FileEdit) -> str:
    message = redacted.redact_entry(edit.message)
    part = message.parts[edit.part] if isinstance(message, Message) else None
    call = part if isinstance(part, ToolCall) else edit.call
    turn = bisect_right(begins, edit.seq)
    words = [word for word in (call.status if call.status != "success" else "", fate_words(message)) if word]
    fate = f" ({', '.join(words)})" if words else ""
    at = utc_minute(call.at or message.at)
    head = f"turn {turn}, {call.name}{fate}{f', {at}' if at else ''}"
    return "\n".join([head, *(change.diff for change in diffs_with_content(call))])
