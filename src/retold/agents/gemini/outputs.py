"""Large tool outputs that the CLI moved out of the session, into `tool-outputs/` beside it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from retold.agents.gemini.notes import Notes
from retold.model.problem import Problem
from retold.reading.files import read_bytes

_REFERENCE = re.compile(
    r"(?:For full output see|The full output has been saved to|[Ff]ull output available at|Full (?:output|string) saved to)"
    r": ?(?P<path>[^\n]+?)\]?(?:\n|$)"
)
_MARKS = ("Output too large.", "Tool output was too large", "<tool_output_masked>")
_WINDOW = 2_000
"""The reference stands near the start or the end of what is left of the output."""


class Outputs(msgspec.Struct, frozen=True):
    """The outputs found beside a session, by file name."""

    texts: Mapping[str, str] = {}

    def full(self, text: str | None, notes: Notes) -> str | None:
        """Return the whole output that `text` is an extract of."""
        if text is None or not (text.startswith(_MARKS) or " saved to: " in text[-_WINDOW:]):
            return None
        match = _REFERENCE.search(text[:_WINDOW]) or _REFERENCE.search(text[-_WINDOW:])
        if match is None:
            return None
        name = re.split(r"[/\\]", match["path"].strip())[-1]
        full = self.texts.get(name)
        if full is None:
            notes.add("missing-output", name)
        return full


def find_outputs(session_file: Path, native_id: str | None) -> Outputs:
    """Read what the CLI moved out of this session: only regular files below its own `tool-outputs` folder."""
    if native_id is None:
        return Outputs()
    chats = next((parent for parent in session_file.parents if parent.name == "chats"), None)
    if chats is None:
        return Outputs()
    folder = chats.parent / "tool-outputs"
    ids = [native_id] if session_file.parent == chats else [native_id, session_file.parent.name]
    found = (pair for session_id in ids for pair in _files(folder, session_id))
    return Outputs(dict(found))


def _files(folder: Path, session_id: str) -> Iterator[tuple[str, str]]:
    own = folder / ("session-" + re.sub(r"[^A-Za-z0-9_-]", "_", session_id))
    # No link is followed at any level: what lies outside the home is none of ours to read.
    if folder.is_symlink() or own.is_symlink() or not own.is_dir():
        return
    try:
        files = sorted(own.iterdir())
    except OSError:
        return
    for file in files:
        if not file.is_symlink():
            content = read_bytes(file)
            if not isinstance(content, Problem):
                yield file.name, content.data.decode(errors="replace")
