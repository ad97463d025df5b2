"""Sessions as an export receives them, with their subagents nested."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from retold.agents.registry import NotASession
from retold.demo.home import make_home
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Message, Session, ToolCall
from support import cases
from support.synced_archive import sync_archive

NOW = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)
EVERYTHING = ExportOptions(thoughts=True, tokens=True, notices=True)


def export_bytes(form: str, tellings: Iterable[ExportSession], choice: ExportOptions = EVERYTHING) -> bytes:
    """Return the bytes of a whole export."""
    return b"".join(FORMATS[form].encode(tellings, choice))


def nest_subagents(sessions: Sequence[Session]) -> list[ExportSession]:
    """Return the top-level sessions with the subagents that their calls started."""
    by_key = {session.key: session for session in sessions}
    started = {key for session in sessions for key in child_keys(session)}
    return [_telling(session, by_key) for session in sessions if session.key not in started]


def _telling(session: Session, by_key: dict[str, Session]) -> ExportSession:
    keys = [key for key in child_keys(session) if key in by_key]
    return ExportSession(session, {key: _telling(by_key[key], by_key) for key in keys})


def tool_calls(session: Session) -> list[ToolCall]:
    messages = [entry for entry in session.timeline if isinstance(entry, Message)]
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


def child_keys(session: Session) -> list[str]:
    return [call.child for call in tool_calls(session) if call.child]


def demo_sessions(folder: Path) -> list[ExportSession]:
    """Return the sessions of the demo home."""
    made = make_home(folder / "demo", NOW)
    return nest_subagents(sync_archive(made.variables["RETOLD_HOME"], made.variables).sessions())


def generated_sessions(shared: Path, folder: Path) -> list[ExportSession]:
    """Return the sessions of the generated home with known totals."""
    script = shutil.copy(shared / "truth" / "make_home.py", folder)
    subprocess.run([sys.executable, script, str(folder / "home")], check=True, stdout=subprocess.DEVNULL)
    return nest_subagents(sync_archive(folder / "retold", {"HOME": str(folder / "home")}).sessions())


def case_sessions(name: str, folder: Path) -> list[ExportSession]:
    """Return the sessions of a case, or an empty list if the case is refused."""
    try:
        return nest_subagents(list(cases.case_sessions(name, cases.copy_case(name, folder))))
    except NotASession:
        return []
