"""What is written down while a file is normalised, and what was met in it."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from retold.agents.gemini.discovery import Origin
from retold.model.problem import Problem
from retold.reading.diagnostics import ReaderNotes as Noted
from retold.reading.disk import Disk, list_folder, read_bytes


class Notes(Noted):
    """Problems and the count of opaque things, with what later steps ask about the file."""

    def __init__(self, path: str, pointer: str = "") -> None:
        """Take the file's path, and the pointer to the list of its records where that is one document."""
        super().__init__(path, pointer)
        self.has_results = False
        """Whether a tool's result was met in a record of its own."""
        self.has_agents = False
        """Whether a call was met that starts a subagent."""
        self.may_lack_tokens = False
        """Whether an answer was met that has no tokens, or calls that were done at several times."""


# Compiled when first needed, as few sessions have such outputs.
_REFERENCE = (
    r"(?:For full output see|The full output has been saved to|[Ff]ull output available at|Full (?:output|string) saved to)"
    r": ?(?P<path>[^\n]+?)\]?(?:\n|$)"
)
MARKS = (
    "Output too large.",
    "Tool output was too large",
    "<tool_output_masked>",
    "[Message Normalized: Tool output exceeded size limit]",
)
"""How a text begins that is only an extract of an output."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_WINDOW = 2_000
"""The reference stands near the start or the end of what is left of the output."""


class Outputs(msgspec.Struct, frozen=True):
    """The outputs found beside a session, by file name."""

    texts: Mapping[str, str] = {}

    def full(self, text: str, notes: Notes) -> str | None:
        """Return the whole output that `text`, which begins with one of `MARKS`, is an extract of."""
        match = re.search(_REFERENCE, text[:_WINDOW]) or re.search(_REFERENCE, text[-_WINDOW:])
        if match is None:
            return None
        name = re.split(r"[/\\]", match["path"].strip())[-1]
        full = self.texts.get(name)
        if full is None:
            notes.add("missing-output", name)
        return full


def find_outputs(place: Origin, disk: Disk, *known: str | None) -> Outputs:
    """Read what the CLI moved out of a session of these ids: only regular files below its own `tool-outputs` folder."""
    ids = dict.fromkeys(session_id for session_id in (*known, place.parent_id) if session_id is not None)
    folder = place.project_folder + os.sep + "tool-outputs"
    return Outputs(dict(pair for session_id in ids for pair in _files(folder, session_id, disk)))


def _files(folder: str, session_id: str, disk: Disk) -> Iterator[tuple[str, str]]:
    own = folder + os.sep + "session-" + _UNSAFE.sub("_", session_id)
    # Most sessions have none. No link is followed at any level: what lies outside the home is none of ours to read.
    if not disk.is_folder(own) or disk.is_link(folder) or disk.is_link(own):
        return
    for file in list_folder(Path(own), disk):
        if not isinstance(file, Problem) and file.is_file(follow_symlinks=False):
            content = read_bytes(Path(file.path), disk)
            if not isinstance(content, Problem):
                yield file.name, content.data.decode(errors="replace")


class Setting(msgspec.Struct, frozen=True):
    """The session in which records are being read."""

    notes: Notes
    native_id: str
    key: str
    is_subagent: bool = False
    outputs: Outputs = Outputs()

    def child(self, agent_id: str | None) -> str | None:
        """Return the key of the subagent that a call started."""
        return None if agent_id is None else f"{self.key}/{agent_id}"
