"""Reads retold's own exports, JSON and Markdown pages: in a page, a mark says where each text is."""

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from retold.model import CATEGORIES
from retold.model.builder import Draft, assemble_session, count_messages
from retold.model.problem import Problem, problem
from retold.model.serialization import decode_session
from retold.model.session import Coverage, Entry, Event, Message, Project, Session, SourceFile, View
from retold.reading.disk import DISK, FileBytes, printable_path, read_bytes
from retold.reading.json_decode import JsonValue, decode, decode_text, repair_problems
from retold.reading.markdown_codec import BEGIN, decode_words, parse_mark

Tree = dict[str, Any]
FORMAT = "retold-markdown"
_EMPTY_DIFF = {"path": None, "before": None, "after": None}


class _PageSession(msgspec.Struct):
    """A session whose entries are being read."""

    summary: Tree
    entries: list[Entry]
    problems: list[Problem]


def read_page(file: FileBytes) -> list[Session] | Problem:
    """Return the session of a page and its subagents."""
    text, repairs = decode_text(file.data)
    path = printable_path(file.path)
    first, _, _ = text.partition("\n")
    lines = (text.replace("\r\n", "\n") if first.endswith("\r") else text).split("\n")
    sessions = _read_sessions(lines, path)
    if not sessions:
        return problem("not-a-session", "a page that tells no session", path)
    sessions[0].problems += [*file.problems, *repair_problems(repairs, path)]
    return [_session(one, file) for one in sessions]


def _read_sessions(lines: list[str], path: str) -> list[_PageSession]:
    sessions: list[_PageSession] = []
    open_sessions: list[_PageSession] = []
    number = 0
    while number < len(lines):
        tree = parse_mark(lines[number]) if lines[number].startswith(BEGIN) else None
        number += 1
        match tree:
            case {"session": dict(summary)}:
                sessions.append(_PageSession(summary, [], []))
                open_sessions.append(sessions[-1])
            case {"end": _} if open_sessions:
                open_sessions.pop()
            case {"lines": int(count)} if tree and open_sessions and count > 0:
                _read_entry(open_sessions[-1], tree, lines[number : number + count], path, number)
                number += count
    for one in open_sessions:
        one.problems.append(problem("truncated-tail", "the page ends before the session", path, len(lines)))
    return sessions


def _read_entry(page: _PageSession, tree: Tree, lines: list[str], path: str, number: int) -> None:
    """Add an entry; lines that do not fit their mark are kept as a notice."""
    try:
        built = _event(tree, lines) if "event" in tree else _message(tree, lines)
        page.entries.append(msgspec.convert(built, Entry))
    except (msgspec.ValidationError, AttributeError, LookupError, TypeError, ValueError) as error:
        page.problems.append(problem("unexpected-shape", f"not as its mark says: {error}", path, number))
        text = "\n".join(lines).strip("\n")
        page.entries.append(Event(None, "notice", None, "live", text))


def _event(tree: Tree, lines: list[str]) -> Tree:
    (text,) = [_words(part["said"], lines) for part in tree.get("parts", ())] or [""]
    return {
        "type": "event",
        "id": tree.get("id"),
        "kind": tree["event"],
        "at": tree.get("at"),
        "fate": tree.get("fate", "live"),
        "text": text,
        "own": tree.get("own", True),
    }


def _message(tree: Tree, lines: list[str]) -> Tree:
    parts = tree.get("parts", [])
    prompts = [_words(part["prompt"], lines) for part in parts if "prompt" in part]
    return {
        "type": "message",
        **{name: tree.get(name) for name in ("id", "role", "at", "model", "response")},
        "fate": tree.get("fate", "live"),
        "own": tree.get("own", True),
        "usage": None,
        "prompt": prompts[0] if prompts else None,
        "parts": [_part(part, lines) for part in parts],
    }


def _part(part: Tree, lines: list[str]) -> Tree:
    match part:
        case {"prompt": place} | {"text": place}:
            return {"type": "text", "text": _words(place, lines)}
        case {"thinking": place}:
            return {"type": "thinking", "subject": part.get("subject"), "text": _words(place, lines)}
        case {"call": call}:
            return _call(call, lines)
        case {"attachment": dict(attached)}:
            return {"type": "attachment", **attached}
        case {"context": kind, "said": place}:
            return {"type": "context", "kind": kind, "text": _words(place, lines)}
        case {"opaque": place}:
            return {"type": "opaque", "value": _value(place, lines)}
        case _:
            raise LookupError(f"a part of no known kind: {', '.join(part)}")


def _call(call: Tree, lines: list[str]) -> Tree:
    arguments = _value(call["arguments"], lines) if "arguments" in call else {}
    texts = {name: _words(place, lines) for name, place in call.get("texts", {}).items()}
    names = [name for name in ("result", "error", "full_result") if name in call]
    results: Tree = {name: _words(call[name], lines) for name in names}
    unsaid = dict.fromkeys(("native_status", "result", "error", "at", "child"))
    fields = {name: value for name, value in call.items() if name not in ("texts", "diff")}
    if "diff" in call:
        fields["display"] = {"type": "diff", **_EMPTY_DIFF, "diff": _words(call["diff"], lines)}
    category = CATEGORIES[call["canonical"]]
    return {
        "type": "tool_call",
        **unsaid,
        **fields,
        "category": category,
        "arguments": {**arguments, **texts},
        **results,
    }


def _words(place: Any, lines: list[str]) -> str:
    start, count, look = place
    found = lines[start : start + count]
    text = decode_words("\n".join(found), look) if len(found) == count else None
    if text is None:
        raise ValueError(f"line {start} and what follows it")
    return text


def _value(place: Any, lines: list[str]) -> Any:
    found = decode(_words(place, lines).encode(errors="replace"))
    if not isinstance(found, JsonValue):
        raise ValueError(found.message)  # noqa: TRY004 - of the content, not of a type
    return found.value


def _session(page: _PageSession, file: FileBytes) -> Session:
    """Return the session with the summary in the page; if that is damaged, with what follows from the entries."""
    source = SourceFile(None, printable_path(file.path), FORMAT, len(file.data))
    coverage = Coverage(len(page.entries), 0)
    entries = tuple(page.entries)
    prompts = [entry.prompt for entry in entries if isinstance(entry, Message) and entry.prompt is not None]
    ends = {"first_prompt": prompts[0], "last_prompt": prompts[-1]} if prompts else {}
    unsaid: Tree = {"first_prompt": None, "last_prompt": None, "extra": {}, "timeline": ()}
    rest = {**unsaid, **ends, "sources": (), "coverage": coverage, "problems": ()}
    try:
        session = msgspec.convert({**page.summary, **rest}, Session)
    except msgspec.ValidationError as error:
        damage = problem("unexpected-shape", f"the session's summary: {error}", source.path, 1)
        page.problems.append(damage)
        session = assemble_session(_draft(file, entries), "full")
    return replace(
        session, sources=(source,), coverage=coverage, problems=tuple(page.problems), timeline=entries
    )


def _draft(file: FileBytes, entries: tuple[Entry, ...]) -> Draft:
    says = [entry for entry in entries if isinstance(entry, Message)]
    times = [entry.at for entry in says if entry.at is not None] or [file.modified_at]
    return Draft(
        key=f"retold:{Path(printable_path(file.path)).stem}",
        agent="unknown",
        native_id=None,
        kind="capture",
        project=Project(None, None, None, "none"),
        started_at=min(times),
        ended_at=max(times),
        status="interrupted",
        sources=(),
        coverage=Coverage(len(entries), 0),
        problems=(),
        full=entries,
        active=entries,
    )


_HEAD = 256
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"version"\s*:\s*\d+\s*,\s*"key"\s*:\s*"')
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*" + re.escape(BEGIN.encode()) + rb'\{"retold":')


def read_own_export(path: Path, view: View = "full") -> list[Session] | Problem | None:
    """Return the sessions of an export of retold; None for another file, or one that cannot be opened."""
    head = _head(path)
    if not (_JSON.match(head) or _PAGE.match(head)):
        return None
    file = read_bytes(path)
    found = file if isinstance(file, Problem) else (_json_sessions if _JSON.match(head) else read_page)(file)
    return found if isinstance(found, Problem) else [_in_view(session, view) for session in found]


def _head(path: Path) -> bytes:
    """Return the start of a file; nothing if it cannot be read, which the next reader reports."""
    try:
        file = DISK.open(str(path))
        try:
            return file.read(_HEAD)
        finally:
            file.close()
    except (OSError, ValueError):
        return b""


def _json_sessions(file: FileBytes) -> list[Session] | Problem:
    """Return the session on each line or of the whole document; before damage, the last one gets a problem."""
    data = file.data.removeprefix(b"\xef\xbb\xbf")
    path = printable_path(file.path)
    whole = _decode_line(data, path, 1)
    if isinstance(whole, Session):
        return [whole]
    sessions: list[Session] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        session = _decode_line(line, path, number) if line.strip() else None
        if isinstance(session, Problem):
            return _with_problem(sessions, session)
        sessions += [session] if session is not None else []
    return sessions


def _with_problem(sessions: list[Session], damage: Problem) -> list[Session] | Problem:
    if not sessions:
        return problem(
            "not-a-session", f"a session of retold, but {damage.message}", damage.path, damage.line
        )
    last = sessions[-1]
    return [*sessions[:-1], replace(last, problems=(*last.problems, damage))]


def _decode_line(data: bytes, path: str, line: int) -> Session | Problem:
    try:
        return decode_session(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return problem("malformed-json", str(error), path, line)


def _in_view(session: Session, view: View) -> Session:
    if session.view in (view, "active"):
        return session
    live = tuple(entry for entry in session.timeline if entry.fate == "live")
    counts = count_messages([entry for entry in live if isinstance(entry, Message)])
    return replace(session, view=view, timeline=live, counts=counts)
