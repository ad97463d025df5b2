"""One conversation as a document: gathered, without its secrets unless they are to stay, and named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import msgspec

from retold.archive.store import Store
from retold.export.formats import FORMATS
from retold.export.gathering import changed, gathered, sessions_of
from retold.export.naming import file_name
from retold.export.telling import ExportOptions, ExportSession
from retold.model.session import View
from retold.redaction import Redactor


class HtmlDocument(msgspec.Struct, frozen=True):
    """A document, and what to call it; its pieces are made as they are asked for, once."""

    name: str
    pieces: Iterator[bytes]


def document(
    record: Store, key: str, form: str, choice: ExportOptions, view: View = "full"
) -> HtmlDocument | None:
    """Return a conversation in one of `FORMATS`, its secrets as `choice` says; None if there is no such conversation."""
    telling = gathered(record, key, view)
    if telling is None:
        return None
    told = without_secrets(telling, Redactor(home=os.path.expanduser("~"))) if choice.is_redacted else telling
    chosen = FORMATS[form]
    return HtmlDocument(file_name(told.session, chosen.suffix), chosen.pieces()((told,), choice))


def without_secrets(telling: ExportSession, redactor: Redactor) -> ExportSession:
    """Return a conversation without its secrets: what one of its sessions gives away stands in none of them."""
    for session in sessions_of(telling):
        redactor.learn(session)
    return changed(telling, partial(redactor.redacted, is_learned=True))
