"""Problems of files and findings of doctor, as values."""

from datetime import datetime
from typing import Literal

import msgspec

LONGEST_MESSAGE = 500
"""The longest message: a problem names a fault, and never carries the content of a file."""
Severity = Literal["loss", "warning", "note"]


class Code(msgspec.Struct, frozen=True):
    """One kind of problem: permanent, documented, and with a case that triggers it."""

    severity: Severity
    meaning: str


CODES: dict[str, Code] = {
    "bad-timestamp": Code("warning", "A time could not be understood; the entry has none."),
    "changed-while-read": Code(
        "warning", "The file kept changing while it was read; what was read last is shown."
    ),
    "foreign-format": Code(
        "loss", "The file belongs to another tool whose files look alike; it was not read."
    ),
    "glued-records": Code(
        "note", "Several records stand on one line, with no line end between them; each was read."
    ),
    "malformed-json": Code(
        "loss", "A line, or the whole file, is not JSON; what could be read around it was."
    ),
    "missing-base": Code(
        "note", "The file goes on from another one that is not there; only what it holds itself is shown."
    ),
    "missing-file": Code("loss", "There is no such file."),
    "missing-output": Code(
        "note", "The agent moved a large tool output to a file that is not there any more."
    ),
    "naive-timestamp": Code("note", "A time has no zone; UTC was assumed."),
    "nested-too-deep": Code("loss", "A record is nested deeper than can be decoded; it was left out."),
    "no-metadata": Code("note", "The file says no session id; its name stands in for it."),
    "not-a-file": Code("loss", "The path is a folder, a pipe or a device, not a file."),
    "not-a-session": Code("loss", "The file was read, but it holds no conversation in a known form."),
    "nothing-said": Code(
        "note", "The file is one of the agent's, but nobody spoke in it; it is no conversation."
    ),
    "nul-bytes": Code(
        "loss",
        "NUL bytes stand where text was, as a crash of the machine leaves them; what stands around them was read.",
    ),
    "number-out-of-range": Code("note", "A number is too large for a float; its digits were kept as text."),
    "original-damaged": Code(
        "loss",
        "The archive's copy of a file is damaged; what was known of its sessions is kept, and all else was read.",
    ),
    "orphan-tool-result": Code(
        "note", "A tool result belongs to no call in this file; it was kept where it stands."
    ),
    "reader-failed": Code(
        "loss",
        "An internal error of retold while it read a conversation or the files beside it. Everything else was read.",
    ),
    "reader-timeout": Code(
        "loss",
        "Reading a conversation took too long and was put off; the archive keeps its files, and all else was read.",
    ),
    "replaced-bytes": Code(
        "loss", "Bytes or escapes that are no text became U+FFFD, the replacement character."
    ),
    "rewind-target-missing": Code(
        "note", "A rewind names a message that is not there; the agent then drops everything."
    ),
    "too-long": Code(
        "loss",
        "A line, or a document without lines, is too long to be decoded; the archive keeps it, and all else was read.",
    ),
    "token-total-mismatch": Code(
        "note", "The recorded token total is not the sum of its parts; both are kept."
    ),
    "tokens-unrecorded": Code(
        "note", "The agent recorded the tokens of some responses and lost those of others; sums are too low."
    ),
    "truncated-tail": Code("loss", "The file ends in the middle of a record; everything before it was read."),
    "unexpected-shape": Code("warning", "A known field holds a value of another kind; it was kept as it is."),
    "unknown-part": Code("note", "A part of a message is of no known kind; it was kept as it is."),
    "unknown-record": Code("note", "A record is of no known kind; it was kept as it is."),
    "unknown-type": Code("note", "A message is of no known type; it was kept as it is."),
    "unreadable-by-agent": Code(
        "note", "The agent's own loader cannot open this file, so its active view is empty."
    ),
    "unreadable-file": Code("loss", "The operating system refused to give the file's content."),
}


class Problem(msgspec.Struct, frozen=True, gc=False):
    """A fault of a file: its code, and its place as a path, a line from 1, and a JSON pointer."""

    code: str
    severity: Severity
    message: str
    path: str
    line: int | None
    pointer: str


def problem(code: str, message: str, path: str, line: int | None = None, pointer: str = "") -> Problem:
    """Return a Problem with the severity of its code; a long message is cut, since it may quote a file."""
    return Problem(code, CODES[code].severity, _cut(message), path, line, _cut(pointer))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


class Finding(msgspec.Struct, frozen=True):
    """A finding of doctor: `loss` means that something is or will be lost without action, `note` is information only."""

    code: str
    severity: Severity
    text: str
    home: str | None = None
    session: str | None = None
    at: datetime | None = None
    """The time at which the agent deletes it; None for its next start, or if nothing is deleted."""
    fix: str | None = None
    """A command that repairs it, if there is one."""
    count: int = 1

    @property
    def is_risk(self) -> bool:
        """Whether somebody should act."""
        return self.severity != "note"
