"""Large outputs that Claude Code moved to files of their own, with an extract left in the transcript."""

from functools import cache, partial
from pathlib import Path

from retold.agents.claude.places import is_session_id
from retold.model.problem import Problem
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, FileBytes, list_folder, printable, read_bytes
from retold.reading.json_decode import as_text

MARK = "<persisted-output>"
_RESULTS = "tool-results"


class Outputs:
    """The files beside a transcript; only what lies in a session's own folder is opened, whatever a line names."""

    def __init__(self, session_folder: str, notes: ReaderNotes, disk: Disk) -> None:
        """Take the session's folder, where to tell what is missing, and where to look."""
        self.session_folder, self.notes, self.disk = session_folder, notes, disk
        self._names = cache(partial(_names, disk=disk))

    def full(self, text: str | None, moved_to: str | None) -> str | None:
        """Return the whole output that a result is an extract of."""
        if moved_to is None or text is None or MARK not in text[:200]:
            return None
        name = moved_to.replace("\\", "/").rpartition("/")[2]
        for folder in self._folders(moved_to):
            if name in self._names(folder):
                file = read_bytes(folder / name, self.disk)
                return as_text(file.data)[0] if isinstance(file, FileBytes) else None
        self.notes.add("missing-output", printable(name))
        return None

    def _folders(self, moved_to: str) -> list[Path]:
        """Return where the file may lie: a fork's lines still name the folder of the session that they are copied from."""
        own = Path(self.session_folder)
        *_, session, folder, _ = ("", "", *moved_to.replace("\\", "/").split("/"))
        is_sibling = folder == _RESULTS and is_session_id(session) and session != own.name
        return [own / _RESULTS, own.parent / session / _RESULTS] if is_sibling else [own / _RESULTS]


def _names(folder: Path, disk: Disk) -> frozenset[str]:
    """Return the files that lie there; a link may lead anywhere, and is none of them."""
    if disk.is_link(str(folder)) or disk.is_link(str(folder.parent)):
        return frozenset()
    found = (entry for entry in list_folder(folder, disk) if not isinstance(entry, Problem))
    return frozenset(entry.name for entry in found if entry.is_file(follow_symlinks=False))
