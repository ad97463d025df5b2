"""A digest as a page to start from, in Markdown: every line says where it stands, and no more is told than there is room for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from retold.export.text.escape import as_code, as_prose
from retold.export.text.numbers import money
from retold.export.text.table import short_number
from retold.export.text.times import day
from retold.insights.decisions import Source
from retold.insights.digest import ChangedFile, Chapter, Cited, Digest
from retold.insights.failures import CallFailure, Fix
from retold.insights.open_ends import OpenEnd, OpenKind
from retold.insights.text import clipped, first_sentences
from retold.model.builder import BYTES_PER_TOKEN
from retold.model.report import PICOS
from retold.model.serialization import encoded, time_text

MOST_TOKENS = 1_500
_MOST_LINES = 20
"""Of a section, however much room there is: what follows matters little."""
_MOST_FILES = 4
_ITEMS = 3
_TITLE, _TEXT, _AROUND = 90, 200, 120
"""Characters of what is told in a line, and of what is told around it."""
_ENDS: dict[OpenKind, str] = {
    "unanswered": "Not answered",
    "question": "Asked, not answered",
    "error": "Ended on an error",
    "interrupted": "Interrupted",
    "todos": "To do",
    "remaining": "Left to do",
    "failure": "Failed, never mended",
}
_SAID: dict[Source, str] = {"accepted": "Agreed", "plan": "Plan, approved", "summary": "From a summary"}
_MORE = "- … and {} more\n"


class _Section(NamedTuple):
    title: str
    lines: Sequence[str]
    """The most important first."""


def brief(digest: Digest, name: str, most_tokens: int = MOST_TOKENS, *, is_utc: bool = False) -> str:
    """Return the page; of each section as many lines as fit into about so many tokens, in turn. Days are local, or UTC."""
    head = f"# {as_prose(name)}: a brief\n\n{_summary(digest, is_utc=is_utc)}\n"
    told = [
        _Section(title, [f"- {line}\n" for line in lines])
        for title, lines in _sections(digest, is_utc=is_utc)
    ]
    shown = [section for section in told if section.lines]
    counts = _counts(shown, most_tokens * BYTES_PER_TOKEN - _size(head))
    return head + "".join(_told(section, count) for section, count in zip(shown, counts, strict=True))


def _sections(digest: Digest, *, is_utc: bool) -> Iterator[tuple[str, Iterable[str]]]:
    near = _Near(digest.roots)
    yield "Sessions", (_session(one, is_utc=is_utc) for one in digest.sessions)
    yield "Open ends", (_open_end(one, near) for one in digest.open_ends)
    yield "Decisions", _decisions(digest)
    yield "Failed, and what mended it", _fixes(digest.failures, near)
    yield "Files changed", map(_file, digest.files)


def _counts(sections: Sequence[_Section], room: int) -> list[int]:
    """Return how many lines of each section there is room for: a line of each in turn, until none fits any more."""
    counts = [0] * len(sections)
    room -= sum(_size(f"\n## {one.title}\n\n{_MORE.format(len(one.lines))}") for one in sections)
    waiting = list(range(len(sections)))
    while waiting:
        for number in list(waiting):
            lines = sections[number].lines
            is_more = counts[number] < min(len(lines), _MOST_LINES)
            size = _size(lines[counts[number]]) if is_more else room + 1
            if size > room:
                waiting.remove(number)
            else:
                counts[number] += 1
                room -= size
    return counts


def _told(section: _Section, count: int) -> str:
    left = len(section.lines) - count
    more = _MORE.format(f"{left:,}") if left else ""
    return f"\n## {section.title}\n\n{''.join(section.lines[:count])}{more}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


class _Near:
    """Paths as they are told within their project."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = [root.rstrip("/\\") for root in sorted(roots, key=len, reverse=True)]

    def __call__(self, text: str) -> str:
        for root in self._roots:
            if root:
                text = text.replace(f"{root}/", "").replace(f"{root}\\", "")
        return text


def _summary(digest: Digest, *, is_utc: bool) -> str:
    sessions = digest.sessions
    times = (at for one in sessions for at in (one.started_at, one.ended_at) if at)
    days = sorted(day(at, is_utc=is_utc) for at in times)
    span = "" if not days else f" on {days[0]}" if days[0] == days[-1] else f" from {days[0]} to {days[-1]}"
    agents = Counter(one.agent for one in sessions)
    by = ", ".join(
        f"{agent} {count:,}" for agent, count in sorted(agents.items(), key=lambda one: (-one[1], one[0]))
    )
    facts = [
        f"{_number(len(sessions), 'session')}{span} ({by})",
        _number(sum(one.prompts for one in sessions), "prompt"),
    ]
    if any(one.subagents for one in sessions):
        facts.append(_number(sum(one.subagents for one in sessions), "subagent"))
    facts += _spent(sessions)
    older = f" {_number(digest.left_out, 'older session')} not looked into." if digest.left_out else ""
    return f"{', '.join(facts)}.{older}"


def _spent(sessions: Sequence[Chapter]) -> Iterator[str]:
    tokens = [one.tokens for one in sessions if one.tokens is not None]
    if tokens:
        about = "about " if any(one.is_estimated for one in sessions) else ""
        yield f"{about}{short_number(sum(tokens))} tokens"
    costs = [one.cost_usd for one in sessions if one.cost_usd is not None]
    if costs:
        yield money(int(sum(costs) * PICOS))


def _session(one: Chapter, *, is_utc: bool) -> str:
    ended = "undated" if one.ended_at is None else day(one.ended_at, is_utc=is_utc)
    facts = ["", _number(one.prompts, "prompt")]
    if one.subagents:
        facts.append(_number(one.subagents, "subagent"))
    if one.status != "success":
        facts.append("nothing but prompts is left" if one.kind == "prompts-only" else one.status)
    return f"{ended} {as_prose(clipped(one.title or 'untitled', _TITLE))} {_cited(one.key, more=', '.join(facts))}"


def _command(text: str, near: "_Near") -> str:
    return as_code(clipped(near(text), _AROUND))


def _open_end(cited: Cited[OpenEnd], near: _Near) -> str:
    end = cited.what
    items = [as_prose(clipped(near(item), _AROUND)) for item in end.items[:_ITEMS]]
    more = len(end.items) - len(items)
    listed = "; ".join(items) + (f"; and {more:,} more" if more > 0 else "")
    told = ": ".join(
        text for text in (as_prose(clipped(near(end.text), _TEXT)) if end.text else "", listed) if text
    )
    return f"{_ENDS[end.kind]}: {told} {_cited(cited.key, end.place.turn)}"


def _decisions(digest: Digest) -> Iterator[str]:
    """Yield what people decided before what agents did."""
    for cited in sorted(digest.decisions, key=lambda one: one.what.by != "person"):
        one = cited.what
        who = _SAID.get(one.source) or one.by.capitalize()
        around = one.context if one.source == "accepted" else one.answers
        to = "" if one.source == "accepted" else "to "
        told = f' ({to}"{as_prose(clipped(around, _AROUND))}")' if around else ""
        yield f"{who}: {as_prose(clipped(one.text, _TEXT))}{told} {_cited(cited.key, one.place.turn)}"


def _fixes(failures: Iterable[Cited[CallFailure]], near: _Near) -> Iterator[str]:
    """Yield what was mended, all that one call made good in a line; commands before other tools."""
    mended = [one for one in failures if one.what.fix is not None]
    mended.sort(key=lambda one: one.what.canonical != "shell_exec")
    for _, same in groupby(mended, key=lambda one: (one.key, one.what.fix and one.what.fix.place)):
        yield _fix(list(same), near)


def _fix(same: Sequence[Cited[CallFailure]], near: _Near) -> str:
    first, fix = same[0].what, same[0].what.fix
    assert fix is not None  # noqa: S101 - whoever calls has looked
    error = clipped(near(first.error.partition("\n")[0]), _AROUND)
    times = f" {len(same)} times" if len(same) > 1 else ""
    failed = f"{_called(first, near)} failed{times}" + (f": {as_prose(error)}" if error else "")
    files = [as_code(near(path)) for path in fix.files[:_MOST_FILES]]
    more = len(fix.files) - len(files)
    done = [", ".join(files) + (f" and {more} more" if more > 0 else "")] if files else []
    if not files:
        done = [_command(command, near) for command in fix.commands[-_ITEMS:]]
    if near(fix.target) != near(first.target) or not done:
        done.append(_command(fix.target, near))
    words = _words(fix)
    said = f": {as_prose(near(words))}" if words else ""
    later = f", mended in turn {fix.place.turn}" if fix.place.turn != first.place.turn else ""
    return f"{failed} → {'; '.join(done)}{said} {_cited(same[0].key, first.place.turn, later)}"


def _words(fix: Fix) -> str:
    """Return what the agent said of a fix: why, where there is room for it, and how it went."""
    both = " ".join(words for words in (fix.before, fix.after) if words)
    return both if len(both) <= _TEXT else first_sentences(fix.after or fix.before or "", _TEXT)


def _called(failure: CallFailure, near: _Near) -> str:
    """Return what failed: a command by itself, what another tool was about with the tool's name."""
    is_command = failure.canonical == "shell_exec" and failure.target
    return _command(failure.target if is_command else f"{failure.tool} {failure.target}".rstrip(), near)


def _file(one: ChangedFile) -> str:
    lines = "" if one.added is None else f", +{one.added:,} -{one.removed or 0:,}"
    of = f" in {_number(len(one.sessions), 'session')}" if len(one.sessions) > 1 else ""
    return f"{as_code(one.name)}: {_number(one.edits, 'edit')}{of}{lines} {_cited(one.last.key, one.last.what.turn)}"


def _cited(key: str, turn: int = 0, more: str = "") -> str:
    return f"({as_prose(key)}{f' turn {turn}' if turn else ''}{more})"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def brief_json(digest: Digest, name: str) -> bytes:
    """Return a digest on one line; whatever stands in a session says in which, in which turn, and at which entry."""
    told = {
        "project": name,
        "roots": list(digest.roots),
        "sessions": [_tree(one) for one in digest.sessions],
        "left_out": digest.left_out,
        "open_ends": list(map(_cited_tree, digest.open_ends)),
        "decisions": list(map(_cited_tree, digest.decisions)),
        "failures": [{**_cited_tree(one), "is_open": one.what.is_open} for one in digest.failures],
        "files": [{**_tree(one), "last": _cited_tree(one.last)} for one in digest.files],
    }
    return encoded(told)


def _cited_tree(one: Cited[Any]) -> dict[str, Any]:
    return {"session": one.key, **_tree(one.what)}


def _tree(value: Any) -> Any:
    """Return a value as dicts and lists; a place is told by its fields, among those of what stands there."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _tree(getattr(value, name)) for name in value.__struct_fields__}
        place = fields.pop("place", None)
        return {**place, **fields} if isinstance(place, Mapping) else fields
    if isinstance(value, tuple):
        return [_tree(item) for item in value]
    if isinstance(value, datetime):
        return time_text(value)
    return str(value) if isinstance(value, Decimal) else value
