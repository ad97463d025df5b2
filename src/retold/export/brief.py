"""The brief of a project in Markdown, from a digest. Each line cites its session and turn; the length is limited."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from retold.export.formats.markdown import markdown_code, markdown_prose
from retold.export.text.amounts import format_usd
from retold.export.text.formatting import format_day, format_short_number, plural
from retold.insights.decisions import DecisionSource
from retold.insights.digest import ChangedFile, Cited, Digest, DigestSession
from retold.insights.failures import CallFailure, Fix
from retold.insights.open_ends import OpenEnd, OpenKind
from retold.insights.text import clip, first_sentences
from retold.model.builder import BYTES_PER_TOKEN
from retold.model.serialization import encode_tree, format_utc

MOST_TOKENS = 1_500
_MOST_LINES = 20
"""Lines of a section, at most: further ones matter little."""
_MOST_FILES = 4
_ITEMS = 3
_TITLE, _TEXT, _AROUND = 90, 200, 120
"""Characters of a title, of a text and of its context."""
_ENDS: dict[OpenKind, str] = {
    "unanswered": "Not answered",
    "question": "Asked, not answered",
    "error": "Ended on an error",
    "interrupted": "Interrupted",
    "todos": "To do",
    "remaining": "Left to do",
    "failure": "Failed, never mended",
}
_SOURCES: dict[DecisionSource, str] = {
    "accepted": "Agreed",
    "plan": "Plan, approved",
    "summary": "From a summary",
}
_MORE = "- … and {} more\n"


class _Section(NamedTuple):
    title: str
    lines: Sequence[str]
    """The most important first."""


def format_brief(digest: Digest, name: str, most_tokens: int = MOST_TOKENS, *, is_utc: bool = False) -> str:
    """Return the brief. The sections take turns in filling about `most_tokens`, line by line. Days are local or UTC."""
    head = f"# {markdown_prose(name)}: a brief\n\n{_summary(digest, is_utc=is_utc)}\n"
    sections = [
        _Section(title, [f"- {line}\n" for line in lines])
        for title, lines in _sections(digest, is_utc=is_utc)
    ]
    shown = [section for section in sections if section.lines]
    counts = _counts(shown, most_tokens * BYTES_PER_TOKEN - _size(head))
    return head + "".join(_format_section(one, count) for one, count in zip(shown, counts, strict=True))


def _sections(digest: Digest, *, is_utc: bool) -> Iterator[tuple[str, Iterable[str]]]:
    near = _ProjectPaths(digest.roots)
    yield "Sessions", (_session(one, is_utc=is_utc) for one in digest.sessions)
    yield "Open ends", (_open_end(one, near) for one in digest.open_ends)
    yield "Decisions", _decisions(digest)
    yield "Failed, and what mended it", _fixes(digest.failures, near)
    yield "Files changed", map(_file, digest.files)


def _counts(sections: Sequence[_Section], room: int) -> list[int]:
    """Return how many lines of each section fit: each section gets a line in turn until none fits."""
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


def _format_section(section: _Section, count: int) -> str:
    left = len(section.lines) - count
    more = _MORE.format(f"{left:,}") if left else ""
    return f"\n## {section.title}\n\n{''.join(section.lines[:count])}{more}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


class _ProjectPaths:
    """Shortens the paths in a text to those within the project."""

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
    days = sorted(format_day(at, is_utc=is_utc) for at in times)
    span = "" if not days else f" on {days[0]}" if days[0] == days[-1] else f" from {days[0]} to {days[-1]}"
    agents = Counter(one.agent for one in sessions)
    by = ", ".join(
        f"{agent} {count:,}" for agent, count in sorted(agents.items(), key=lambda one: (-one[1], one[0]))
    )
    facts = [
        f"{plural(len(sessions), 'session')}{span} ({by})",
        plural(sum(one.prompts for one in sessions), "prompt"),
    ]
    if any(one.subagents for one in sessions):
        facts.append(plural(sum(one.subagents for one in sessions), "subagent"))
    facts += _usage(sessions)
    older = f" {plural(digest.left_out, 'older session')} not looked into." if digest.left_out else ""
    return f"{', '.join(facts)}.{older}"


def _usage(sessions: Sequence[DigestSession]) -> Iterator[str]:
    tokens = [one.tokens for one in sessions if one.tokens is not None]
    if tokens:
        about = "about " if any(one.is_estimated for one in sessions) else ""
        yield f"{about}{format_short_number(sum(tokens))} tokens"
    costs = [one.cost_usd for one in sessions if one.cost_usd is not None]
    if costs:
        yield format_usd(sum(costs, Decimal()))


def _session(one: DigestSession, *, is_utc: bool) -> str:
    ended = "undated" if one.ended_at is None else format_day(one.ended_at, is_utc=is_utc)
    facts = ["", plural(one.prompts, "prompt")]
    if one.subagents:
        facts.append(plural(one.subagents, "subagent"))
    if one.status != "success":
        facts.append("nothing but prompts is left" if one.kind == "prompts-only" else one.status)
    title = markdown_prose(clip(one.title or "untitled", _TITLE))
    return f"{ended} {title} {_citation(one.key, more=', '.join(facts))}"


def _command(text: str, near: _ProjectPaths) -> str:
    return markdown_code(clip(near(text), _AROUND))


def _open_end(cited: Cited[OpenEnd], near: _ProjectPaths) -> str:
    end = cited.value
    items = [markdown_prose(clip(near(item), _AROUND)) for item in end.items[:_ITEMS]]
    more = len(end.items) - len(items)
    listed = "; ".join(items) + (f"; and {more:,} more" if more > 0 else "")
    text = markdown_prose(clip(near(end.text), _TEXT)) if end.text else ""
    both = ": ".join(part for part in (text, listed) if part)
    return f"{_ENDS[end.kind]}: {both} {_citation(cited.key, end.place.turn)}"


def _decisions(digest: Digest) -> Iterator[str]:
    """Yield decisions of people before those of agents."""
    for cited in sorted(digest.decisions, key=lambda one: one.value.by != "person"):
        one = cited.value
        who = _SOURCES.get(one.source) or one.by.capitalize()
        context = one.context if one.source == "accepted" else one.answers
        to = "" if one.source == "accepted" else "to "
        around = f' ({to}"{markdown_prose(clip(context, _AROUND))}")' if context else ""
        yield f"{who}: {markdown_prose(clip(one.text, _TEXT))}{around} {_citation(cited.key, one.place.turn)}"


def _fixes(failures: Iterable[Cited[CallFailure]], near: _ProjectPaths) -> Iterator[str]:
    """Yield a line for each call that fixed something, with all failures that it fixed; commands before other tools."""
    fixed = [one for one in failures if one.value.fix is not None]
    fixed.sort(key=lambda one: one.value.canonical != "shell_exec")
    for _, same in groupby(fixed, key=lambda one: (one.key, one.value.fix and one.value.fix.place)):
        yield _fix(list(same), near)


def _fix(same: Sequence[Cited[CallFailure]], near: _ProjectPaths) -> str:
    first, fix = same[0].value, same[0].value.fix
    assert fix is not None  # noqa: S101 - the caller selects those
    error = clip(near(first.error.partition("\n")[0]), _AROUND)
    times = f" {len(same)} times" if len(same) > 1 else ""
    failed = f"{_call(first, near)} failed{times}" + (f": {markdown_prose(error)}" if error else "")
    files = [markdown_code(near(path)) for path in fix.files[:_MOST_FILES]]
    more = len(fix.files) - len(files)
    done = [", ".join(files) + (f" and {more} more" if more > 0 else "")] if files else []
    if not files:
        done = [_command(command, near) for command in fix.commands[-_ITEMS:]]
    if near(fix.target) != near(first.target) or not done:
        done.append(_command(fix.target, near))
    words = _fix_words(fix)
    comment = f": {markdown_prose(near(words))}" if words else ""
    later = f", mended in turn {fix.place.turn}" if fix.place.turn != first.place.turn else ""
    return f"{failed} → {'; '.join(done)}{comment} {_citation(same[0].key, first.place.turn, later)}"


def _fix_words(fix: Fix) -> str:
    """Return what the agent said before and after a fix, or only after it if both are too long."""
    both = " ".join(words for words in (fix.before, fix.after) if words)
    return both if len(both) <= _TEXT else first_sentences(fix.after or fix.before or "", _TEXT)


def _call(failure: CallFailure, near: _ProjectPaths) -> str:
    """Return the call that failed: a command, or another tool with its target."""
    is_command = failure.canonical == "shell_exec" and failure.target
    return _command(failure.target if is_command else f"{failure.tool} {failure.target}".rstrip(), near)


def _file(one: ChangedFile) -> str:
    lines = "" if one.added is None else f", +{one.added:,} -{one.removed or 0:,}"
    of = f" in {plural(len(one.sessions), 'session')}" if len(one.sessions) > 1 else ""
    citation = _citation(one.last.key, one.last.value.turn)
    return f"{markdown_code(one.name)}: {plural(one.edits, 'edit')}{of}{lines} {citation}"


def _citation(key: str, turn: int = 0, more: str = "") -> str:
    return f"({markdown_prose(key)}{f' turn {turn}' if turn else ''}{more})"


def brief_json(digest: Digest, name: str) -> bytes:
    """Return a digest as JSON; each item has its session, turn and entry."""
    tree = {
        "project": name,
        "roots": list(digest.roots),
        "sessions": [_tree(one) for one in digest.sessions],
        "left_out": digest.left_out,
        "open_ends": list(map(_cited_tree, digest.open_ends)),
        "decisions": list(map(_cited_tree, digest.decisions)),
        "failures": [{**_cited_tree(one), "is_open": one.value.is_open} for one in digest.failures],
        "files": [{**_tree(one), "last": _cited_tree(one.last)} for one in digest.files],
    }
    return encode_tree(tree)


def _cited_tree(one: Cited[Any]) -> dict[str, Any]:
    return {"session": one.key, **_tree(one.value)}


def _tree(value: Any) -> Any:
    """Return a value as dicts and lists; the fields of its place stand among its own."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _tree(getattr(value, name)) for name in value.__struct_fields__}
        place = fields.pop("place", None)
        return {**place, **fields} if isinstance(place, Mapping) else fields
    if isinstance(value, tuple):
        return [_tree(item) for item in value]
    if isinstance(value, datetime):
        return format_utc(value)
    return str(value) if isinstance(value, Decimal) else value
