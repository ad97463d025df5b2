"""Files that retold itself wrote: sessions in the JSON form, and Markdown pages."""

import re
from pathlib import Path

import msgspec

from retold.model.assemble import counted
from retold.model.entries import Message
from retold.model.problem import Problem, problem
from retold.model.session import Session, View
from retold.model.wire import decode_session
from retold.reading.disk import DISK
from retold.reading.files import FileBytes, printable, read_bytes
from retold.reading.page_marks import BEGIN

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
    from retold.reading.pages import page_sessions  # noqa: PLC0415 - few files are pages

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
