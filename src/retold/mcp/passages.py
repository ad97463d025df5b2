"""How a conversation is cited: by its key, so that it can be asked for again, and in a few words, so that it need not be."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from msgspec.structs import replace

from retold.archive.queries.conditions import Condition, of_key
from retold.archive.queries.listing import is_among
from retold.export.diffs import FileEdit, changed_by, edits_of
from retold.export.load import Quoting
from retold.export.text import times
from retold.export.text.escape import uncut
from retold.export.transcript import TranscriptOptions, about, entry_lines, fate_of, plural, speaker
from retold.insights.past_answers import PastAnswer
from retold.insights.text import TurnPlace as Gleaned
from retold.mcp.reply import BadCursor, Passage, head_line
from retold.mcp.tool import ToolContext
from retold.model.session import Entry, Message, Session, ToolCall
from retold.projects.matching import last_name
from retold.reports.dashboards import Changed, changers, files_meant
from retold.search.filters import Filters
from retold.search.listing import rows_meant
from retold.search.pages import SessionSummary, glances, glances_of, held_rows
from retold.search.report_query import ReportQuery, span
from retold.search.scan_job import ResultItem, ResultPlace
from retold.sessions.pages import slices, turn_places

_TITLE = 90


def cited(card: SessionSummary) -> str:
    """Return a conversation in a line: its key, when it ended, its project, its title."""
    facts = [card.key, moment(card.ended_at), last_name(card.root) if card.root else None, title(card.title)]
    return " · ".join(fact for fact in facts if fact)


def cleanly_cited(card: SessionSummary, clean: Callable[[str], str]) -> str:
    """Return the same without secrets, taken out by somebody who knows more of them than the title gives away."""
    return cited(card if card.title is None else replace(card, title=clean(uncut(card.title) or "")))


def moment(at: datetime | None) -> str | None:
    """Return a time to the minute, in UTC: keys are in UTC as well."""
    return None if at is None else times.moment(at, is_utc=True)


def title(text: str | None) -> str | None:
    """Return a title that leaves room for what is told below it; it is cut between words, see `uncut`."""
    line = " ".join((text or "").split())
    return uncut(line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…")


_MOST = 10
"""Conversations that are told of where several are meant."""
_LONGEST = 80


def is_seen(asking: ToolContext, key: str) -> bool:
    """Tell whether a conversation is within reach."""
    return is_among(asking.record, key, asking.reach.conditions())


def resolve_session(asking: ToolContext, text: str) -> SessionSummary:
    """Return the conversation that a key, a native id or the start of either means.

    One out of reach is told exactly as one that does not exist.
    """
    found = rows_meant(asking.record, text, asking.reach.conditions()) if text else []
    if len(found) > 1:
        keys = ", ".join(head_line(key) for _, key, _ in found[:_MOST])
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise BadCursor(f"{text[:_LONGEST]!r} may be any of {keys}{more}: give a whole key")
    cards = glances_of(asking.record, [number for number, *_ in found])
    if not cards:
        raise BadCursor(f"there is no session {text[:_LONGEST]!r}: search_history and recent_work tell keys")
    return cards[0]


_WHOLE = "about it"
"""The place of a title, or of a tag."""


def is_untold(asking: ToolContext, holding: ResultItem) -> bool:
    """Tell whether words stand only in what is not told: then not even that may be known, or they could be guessed."""
    return asking.redactors is not None and bool(holding.places) and not any(map(_is_told, holding.places))


def _is_told(place: ResultPlace) -> bool:
    return bool(place.matches)


def place_lines(asking: ToolContext, key: str, holding: ResultItem) -> Iterator[str]:
    """Yield the places at which the words of a question stand."""
    begins = turn_places(asking.record, holding.session, key)
    return (_line(begins, place) for place in holding.places)


def _line(begins: Sequence[int], place: ResultPlace) -> str:
    turn = f"turn {bisect_right(begins, place.seq)}" if place.seq >= 0 else _WHOLE
    who = place.tool or place.role
    became = "" if place.fate == "live" else f" ({place.fate})"
    return f"{turn}{f', {who}' if who else ''}{became}: {place.snippet}"


def turn_words(place: Gleaned) -> str:
    """Return the turn of something that was gleaned; what nobody had asked for yet is of the first."""
    return f"turn {max(1, place.turn)}"


_MOST_CHILDREN = 20
"""Subagents that are told of at the top; each is told of where it was called as well."""


def top(asking: ToolContext, quoting: Quoting, turns: int) -> Iterator[Passage]:
    """Yield what is known of a conversation before any of it is read."""
    session = quoting.session
    if session is not None:
        title, *facts = [line.text for line in about(session, is_utc=True)]
        lines = [f"{title}", *facts, *_further(asking, session, turns)]
        yield Passage(f"session {session.key}", "\n".join(lines), is_clean=True)


def _further(asking: ToolContext, session: Session, turns: int) -> Iterator[str]:
    ended = f" · ended {moment(session.ended_at)}" if session.ended_at else ""
    yield f"{session.agent} · {plural(turns, 'turn')} · {session.status}{ended}"
    if session.parent and is_seen(asking, session.parent):
        yield f"part of {session.parent}"
    children = [key for key in session.children if is_seen(asking, key)]
    shown, left = children[:_MOST_CHILDREN], len(children) - _MOST_CHILDREN
    if shown:
        yield "subagents: " + ", ".join(shown) + (f" and {left} more" if left > 0 else "")


def told(  # noqa: PLR0913 - a conversation, who asks for it, and which part of it
    asking: ToolContext,
    quoting: Quoting,
    begins: Sequence[int],
    wanted: TranscriptOptions,
    first: int,
    end: int | None,
) -> Iterator[Passage]:
    """Yield a passage for every entry of which something is told; those before it that tell nothing go with it."""
    session = quoting.session
    if session is None:
        return
    skipped = 0
    for seq, entry in quoting.entries(first, end):
        lines = [line.text for line in entry_lines(entry, wanted)]
        lines += [f"  → subagent {key}" for key in _children(entry) if is_seen(asking, key)]
        if not lines:
            skipped += 1
            continue
        head = f"turn {max(bisect_right(begins, seq), 1)} · {_who(entry, session.agent)}"
        yield Passage(head, "\n".join(lines), is_clean=True, numbers=skipped + 1)
        skipped = 0


def _children(entry: Entry) -> Iterator[str]:
    parts = entry.parts if isinstance(entry, Message) else ()
    return (part.child for part in parts if isinstance(part, ToolCall) and part.child)


def _who(entry: Entry, agent: str) -> str:
    name = speaker(entry, agent) if isinstance(entry, Message) else entry.kind
    became = fate_of(entry)
    at = moment(entry.at)
    return f"{name}{f' ({became})' if became else ''}{f' · {at}' if at else ''}"


Lines = Callable[[ToolContext, PastAnswer, SessionSummary], Iterator[str]]
"""What is told of one."""


def passages(asking: ToolContext, remembered: Iterable[PastAnswer], lines: Lines) -> Iterator[Passage]:
    """Yield a passage for each conversation; those of which nothing is told go with the next."""
    skipped = 0
    for found in remembered:
        if is_untold(asking, found.holding):
            skipped += 1
            continue
        for row in held_rows(asking.record, [found.holding]):
            quoting = Quoting(asking.record, row.card.key, asking.redactors)
            head, told = cleanly_cited(row.card, quoting.text), "\n".join(lines(asking, found, row.card))
            yield Passage(head, quoting.text(told), is_clean=True, numbers=skipped + 1)
            skipped = 0


_MOST_FILES = 50
"""Files that are told of where several are meant."""
_MOST_EDITS = 40
"""Edits of one session that are told."""
_AT_ONCE = 10
"""Sessions that are asked for at a time."""


def changes(asking: ToolContext, path: str, sessions: Sequence[Condition]) -> Iterator[Passage]:
    """Yield the conversations that changed a file, or, where several are meant, which."""
    question = _question(asking, sessions)
    files = files_meant(question, path, _MOST_FILES)
    if len(files) > 1:
        yield from islice(_files(files), asking.first, None)
    elif files:
        yield from _sessions(asking, question, files[0])


def _question(asking: ToolContext, sessions: Sequence[Condition]) -> ReportQuery:
    wanted = Filters()
    wanted.sessions += sessions
    return ReportQuery(asking.record, wanted, span(None, None, is_utc=True))


def _files(files: list[Changed]) -> Iterator[Passage]:
    """Yield which files are meant, each by a path that means no other."""
    names, ends = [file.name for file in files], _ends([file.path for file in files])
    lines = [
        f"{file.name if names.count(file.name) == 1 else end}: {plural(file.changes, 'change')}"
        f" in {plural(file.sessions, 'conversation')}, last {moment(file.last_at) or 'at no known time'}"
        for file, end in zip(files, ends, strict=True)
    ]
    yield Passage("Several files are meant: ask again with one of these paths", "\n".join(lines))


def _ends(paths: Sequence[str]) -> list[str]:
    """Return the shortest end of each path that is of no other: a whole path may hold a name that is not told."""
    parts = [path.replace("\\", "/").split("/") for path in paths]
    deepest = max(map(len, parts))
    ends = [["/".join(part[-length:]) for part in parts] for length in range(1, deepest + 1)]
    return [
        next((same[place] for same in ends if same.count(same[place]) == 1), path)
        for place, path in enumerate(paths)
    ]


def _sessions(asking: ToolContext, question: ReportQuery, file: Changed) -> Iterator[Passage]:
    """Yield the sessions that changed a file, the newest first."""
    place = asking.first
    while found := changers(question, file.path, _AT_ONCE, place):
        for changer in found:
            for card in glances(asking.record, [of_key(changer.key)], 1):
                quoting = Quoting(asking.record, card.key, asking.redactors)
                head = f"{cleanly_cited(card, quoting.text)} · {file.name}"
                yield Passage(head, _edits(asking, card, quoting, file.path), is_clean=True)
        place += len(found)


def _edits(asking: ToolContext, card: SessionSummary, quoting: Quoting, path: str) -> str:
    """Return what a session changed in a file, call by call."""
    found = edits_of(slices(asking.record, card.key), path)
    begins = turn_places(asking.record, card.session, card.key)
    told = [_edit(begins, quoting, edit) for edit in islice(found, _MOST_EDITS)]
    left = sum(1 for _ in found)
    more = [f"{plural(left, 'more change')}: read_session with tools `full` tells them"] if left else []
    return "\n\n".join([*told, *more])


def _edit(begins: Sequence[int], quoting: Quoting, edit: FileEdit) -> str:
    message = quoting.entry(edit.message)
    part = message.parts[edit.place] if isinstance(message, Message) else None
    call = part if isinstance(part, ToolCall) else edit.call
    turn = bisect_right(begins, edit.seq)
    became = [word for word in (call.status if call.status != "success" else "", fate_of(message)) if word]
    told = f" ({', '.join(became)})" if became else ""
    at = moment(call.at or message.at)
    head = f"turn {turn}, {call.name}{told}{f', {at}' if at else ''}"
    return "\n".join([head, *(change.diff for change in changed_by(call))])
