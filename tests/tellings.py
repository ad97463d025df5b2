"""Conversations to be told, as an export gets them: with their subagents inside."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import casebook
from retold.agents.registry import NotASession
from retold.demo.home import make_home
from retold.export.formats import FORMATS
from retold.export.telling import Choice, Telling
from retold.model.entries import Message
from retold.model.parts import ToolCall
from retold.model.session import Session
from synced import synced

NOW = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)
EVERYTHING = Choice(thoughts=True, tokens=True, notices=True)


def exported(form: str, tellings: Iterable[Telling], choice: Choice = EVERYTHING) -> bytes:
    """Return a whole file."""
    return b"".join(FORMATS[form].pieces()(tellings, choice))


def nested(sessions: Sequence[Session]) -> list[Telling]:
    """Return conversations with the subagents that their calls started."""
    by_key = {session.key: session for session in sessions}
    started = {key for session in sessions for key in children(session)}
    return [_telling(session, by_key) for session in sessions if session.key not in started]


def _telling(session: Session, by_key: dict[str, Session]) -> Telling:
    keys = [key for key in children(session) if key in by_key]
    return Telling(session, {key: _telling(by_key[key], by_key) for key in keys})


def calls(session: Session) -> list[ToolCall]:
    messages = [entry for entry in session.timeline if isinstance(entry, Message)]
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


def children(session: Session) -> list[str]:
    return [call.child for call in calls(session) if call.child]


def demo(folder: Path) -> list[Telling]:
    """Return the conversations of the made-up home."""
    made = make_home(folder / "demo", NOW)
    return nested(synced(made.variables["RETOLD_HOME"], made.variables).sessions())


def true_home(shared: Path, folder: Path) -> list[Telling]:
    """Return the conversations of the home whose totals are known."""
    script = shutil.copy(shared / "truth" / "make_home.py", folder)
    subprocess.run([sys.executable, script, str(folder / "home")], check=True, stdout=subprocess.DEVNULL)
    return nested(synced(folder / "retold", {"HOME": str(folder / "home")}).sessions())


def case(name: str, folder: Path) -> list[Telling]:
    """Return the conversations of a case; none where it is refused."""
    try:
        return nested(list(casebook.sessions(name, casebook.laid_out(name, folder))))
    except NotASession:
        return []
