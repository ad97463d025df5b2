"""Loads sessions with their subagents from the archive for an export."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from retold.archive.store import Store
from retold.export.files import file_name
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Session, View
from retold.sessions.load import load_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from retold.redaction import Redactor

DEEPEST = 16
"""Levels of subagents: no agent has more, and a cycle must end somewhere."""


LoadFailure = Callable[[str, Exception], None]
"""Called with the key of a session that cannot be read, and the error."""


def load_export(
    store: Store, key: str, view: View, depth: int = 0, fail: LoadFailure | None = None
) -> ExportSession | None:
    """Return a session with its subagents; None if there is no such session.

    A session that cannot be read is passed to `fail` and left out.
    """
    try:
        session = load_session(store, key, view)
    except Exception as error:
        if fail is None:
            raise
        fail(key, error)
        return None
    if session is None:
        return None
    children = session.children if depth < DEEPEST else ()
    exports = {child: load_export(store, child, view, depth + 1, fail) for child in children}
    return ExportSession(session, {child: export for child, export in exports.items() if export is not None})


def sessions_of(export: ExportSession) -> Iterator[Session]:
    """Yield a session and its subagents."""
    yield export.session
    for subagent in export.subagents.values():
        yield from sessions_of(subagent)


def map_sessions(export: ExportSession, change: Callable[[Session], Session]) -> ExportSession:
    """Return an export with `change` applied to each session; keys must not change."""
    subagents = {key: map_sessions(subagent, change) for key, subagent in export.subagents.items()}
    return ExportSession(change(export.session), subagents)


def select_entries(export: ExportSession, first: int, last: int | None) -> ExportSession:
    """Return an export with only some entries of its own session, counted from 1."""
    session = export.session
    part = msgspec.structs.replace(session, timeline=session.timeline[first - 1 : last])
    return msgspec.structs.replace(export, session=part)


class ExportDocument(msgspec.Struct, frozen=True):
    """A document and its file name. Its pieces are made while they are read, once."""

    name: str
    pieces: Iterator[bytes]


def load_document(
    store: Store, key: str, form: str, options: ExportOptions, view: View = "full"
) -> ExportDocument | None:
    """Return a session in one of `FORMATS`, redacted if `options` say so; None if there is no such session."""
    export = load_export(store, key, view)
    if export is None:
        return None
    if options.is_redacted:
        from retold.redaction import Redactor

        export = redact_export(export, Redactor(home=os.path.expanduser("~")))
    chosen = FORMATS[form]
    return ExportDocument(file_name(export.session, chosen.suffix), chosen.encode((export,), options))


def redact_export(export: ExportSession, redactor: Redactor) -> ExportSession:
    """Return an export without secrets: a secret that one of its sessions reveals is removed from all of them."""
    for session in sessions_of(export):
        redactor.learn(session)
    return map_sessions(export, partial(redactor.redact, is_learned=True))
