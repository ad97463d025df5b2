"""Our own Markdown pages, read back: every word stands where the mark before it says."""

import re
from pathlib import Path
from typing import Any

import msgspec

from retold.model.builder import Draft, assembled, counted
from retold.model.problem import Problem, problem
from retold.model.serialization import decode_session
from retold.model.session import (
    CATEGORIES,
    Coverage,
    Entry,
    Event,
    Message,
    Project,
    Session,
    SourceFile,
    View,
)
from retold.reading.disk import DISK, FileBytes, printable, read_bytes
from retold.reading.json_decode import Decoded, as_text, decode
from retold.reading.markdown_codec import BEGIN, marked, said

Tree = dict[str, Any]
FORMAT = "retold-markdown"
_SHOWN = {"path": None, "before": None, "after": None}


class _Told(msgspec.Struct):
    """A session whose entries are being read."""

    summary: Tree
    entries: list[Entry]
    problems: list[Problem]


def page_sessions(file: FileBytes) -> list[Session] | Problem:
    """Return the sessions of a page: the one that it tells, and behind it its subagents."""
    text, mended = as_text(file.data)
    path = printable(file.path)
    first, _, _ = text.partition("\n")
    lines = (text.replace("\r\n", "\n") if first.endswith("\r") else text).split("\n")
    told = _told(lines, path)
    if not told:
        return problem("not-a-session", "a page that tells no session", path)
    told[0].problems += [*file.problems, *(problem(code, message, path) for code, message in mended)]
    return [_session(one, file) for one in told]


def _told(lines: list[str], path: str) -> list[_Told]:
    found: list[_Told] = []
    opened: list[_Told] = []
    number = 0
    while number < len(lines):
        tree = marked(lines[number]) if lines[number].startswith(BEGIN) else None
        number += 1
        match tree:
            case {"session": dict(summary)}:
                found.append(_Told(summary, [], []))
                opened.append(found[-1])
            case {"end": _} if opened:
                opened.pop()
            case {"lines": int(count)} if tree and opened and count > 0:
                _read_entry(opened[-1], tree, lines[number : number + count], path, number)
                number += count
    for one in opened:
        one.problems.append(problem("truncated-tail", "the page ends before the session", path, len(lines)))
    return found


def _read_entry(told: _Told, tree: Tree, lines: list[str], path: str, number: int) -> None:
    """Add an entry; where its lines are not as its mark says, they are kept as they are."""
    try:
        built = _event(tree, lines) if "event" in tree else _message(tree, lines)
        told.entries.append(msgspec.convert(built, Entry))
    except (msgspec.ValidationError, AttributeError, LookupError, TypeError, ValueError) as error:
        told.problems.append(problem("unexpected-shape", f"not as its mark says: {error}", path, number))
        text = "\n".join(lines).strip("\n")
        told.entries.append(Event(None, "notice", None, "live", text))


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
    told = {name: value for name, value in call.items() if name not in ("texts", "diff")}
    if "diff" in call:
        told["display"] = {"type": "diff", **_SHOWN, "diff": _words(call["diff"], lines)}
    category = CATEGORIES[call["canonical"]]
    return {
        "type": "tool_call",
        **unsaid,
        **told,
        "category": category,
        "arguments": {**arguments, **texts},
        **results,
    }


def _words(place: Any, lines: list[str]) -> str:
    start, count, look = place
    found = lines[start : start + count]
    text = said("\n".join(found), look) if len(found) == count else None
    if text is None:
        raise ValueError(f"line {start} and what follows it")
    return text


def _value(place: Any, lines: list[str]) -> Any:
    found = decode(_words(place, lines).encode(errors="replace"))
    if not isinstance(found, Decoded):
        raise ValueError(found.message)  # noqa: TRY004 - of the content, not of a type
    return found.value


def _session(told: _Told, file: FileBytes) -> Session:
    """Return the session with its summary as the page has it; where that is damaged, as far as the entries tell it."""
    source = SourceFile(None, printable(file.path), FORMAT, len(file.data))
    coverage = Coverage(len(told.entries), 0)
    entries = tuple(told.entries)
    prompts = [entry.prompt for entry in entries if isinstance(entry, Message) and entry.prompt is not None]
    ends = {"first_prompt": prompts[0], "last_prompt": prompts[-1]} if prompts else {}
    unsaid: Tree = {"first_prompt": None, "last_prompt": None, "extra": {}, "timeline": ()}
    rest = {**unsaid, **ends, "sources": (), "coverage": coverage, "problems": ()}
    try:
        session = msgspec.convert({**told.summary, **rest}, Session)
    except msgspec.ValidationError as error:
        damage = problem("unexpected-shape", f"the session's summary: {error}", source.path, 1)
        told.problems.append(damage)
        session = assembled(_draft(file, entries), "full")
    return msgspec.structs.replace(
        session, sources=(source,), coverage=coverage, problems=tuple(told.problems), timeline=entries
    )


def _draft(file: FileBytes, entries: tuple[Entry, ...]) -> Draft:
    says = [entry for entry in entries if isinstance(entry, Message)]
    times = [entry.at for entry in says if entry.at is not None] or [file.modified_at]
    return Draft(
        key=f"retold:{Path(printable(file.path)).stem}",
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


def told_sessions(path: Path, view: View = "full") -> list[Session] | Problem | None:
    """Return the sessions of a file of our own; None if it is another's, or cannot be opened."""
    head = _head(path)
    if not (_JSON.match(head) or _PAGE.match(head)):
        return None
    file = read_bytes(path)
    found = file if isinstance(file, Problem) else (_json_sessions if _JSON.match(head) else _page)(file)
    return found if isinstance(found, Problem) else [_seen(session, view) for session in found]


def _head(path: Path) -> bytes:
    """Return how a file begins; nothing where it cannot be read: whoever is asked next says why."""
    try:
        file = DISK.open(str(path))
        try:
            return file.read(_HEAD)
        finally:
            file.close()
    except (OSError, ValueError):
        return b""


def _page(file: FileBytes) -> list[Session] | Problem:

    return page_sessions(file)


def _json_sessions(file: FileBytes) -> list[Session] | Problem:
    """Return one session a line, or the one of a document; those before a damage, with a word about it."""
    data = file.data.removeprefix(b"\xef\xbb\xbf")
    path = printable(file.path)
    whole = _decoded(data, path, 1)
    if isinstance(whole, Session):
        return [whole]
    found: list[Session] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        session = _decoded(line, path, number) if line.strip() else None
        if isinstance(session, Problem):
            return _with_problem(found, session)
        found += [session] if session is not None else []
    return found


def _with_problem(found: list[Session], told: Problem) -> list[Session] | Problem:
    if not found:
        return problem("not-a-session", f"a session of retold, but {told.message}", told.path, told.line)
    last = found[-1]
    return [*found[:-1], msgspec.structs.replace(last, problems=(*last.problems, told))]


def _decoded(data: bytes, path: str, line: int) -> Session | Problem:
    try:
        return decode_session(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return problem("malformed-json", str(error), path, line)


def _seen(session: Session, view: View) -> Session:
    """Return a session in the view that was asked for, where the file has it."""
    if session.view in (view, "active"):
        return session
    live = tuple(entry for entry in session.timeline if entry.fate == "live")
    counts = counted([entry for entry in live if isinstance(entry, Message)])
    return msgspec.structs.replace(session, view=view, timeline=live, counts=counts)
