"""Where a command's words go: data on stdout, everything else on stderr; nothing a terminal would obey."""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO


WIDTH = 80
CODES = {
    "title": "1",
    "faint": "2",
    "you": "1;36",
    "agent": "1;35",
    "tool": "34",
    "bad": "31",
    "match": "1;33",
    "bar": "36",
}
_NOT_PLAIN = re.compile("[^\t\n\x20-\x7e]")


def harmless(text: str) -> str:
    """Return text in which every hidden or steering character is a visible sign: a transcript must not steer a terminal."""
    if _NOT_PLAIN.search(text) is None:
        return text
    from retold.export.text.escape import safe_for_terminal  # most lines do without it

    return safe_for_terminal(text)


def _escaped(line: str) -> str:
    """Return JSON in which every hidden or steering character is escaped."""
    if _NOT_PLAIN.search(line) is None:
        return line
    from retold.export.text.escape import escaped_json

    return escaped_json(line)


def terminal_columns(env: Mapping[str, str], out: TextIO) -> int:
    """Return how wide the terminal is; 80 where there is none. `shutil` has this, at a quarter of a start of Python."""
    told = env.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError, AttributeError):
        return WIDTH


class Console:
    """What a command writes with."""

    def __init__(self, env: Mapping[str, str], out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.columns = terminal_columns(env, self.out)
        self.has_color = self.out.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"

    def line(self, text: str, style: str = "plain") -> None:
        """Write a line of text for people."""
        text = harmless(text)
        code = CODES.get(style) if self.has_color and text else None
        self.out.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else text + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Write many plain lines at once."""
        text = harmless("\n".join(lines))
        self.out.write(f"{text}\n" if text else "")

    def line_of(self, pieces: Iterable[str]) -> None:
        """Write one plain line piece by piece; those of CSV may hold the ends of others."""
        for piece in pieces:
            self.out.write(harmless(piece))
        self.out.write("\n")

    def pieces(self, pieces: Iterable[tuple[str, str]]) -> None:
        """Write a line in pieces, each with its style; none of them may end it early."""
        for style, text in pieces:
            shown = harmless(text).replace("\n", " ")
            code = CODES.get(style) if self.has_color and shown else None
            self.out.write(f"\x1b[{code}m{shown}\x1b[0m" if code else shown)
        self.out.write("\n")

    def record(self, line: bytes) -> None:
        """Write one JSON object, as a line."""
        self.record_of((line,))

    def record_of(self, pieces: Iterable[bytes]) -> None:
        """Write one JSON object piece by piece; what JSON lets through and a terminal would obey is escaped."""
        for piece in pieces:
            self.out.write(_escaped(piece.decode()))
        self.out.write("\n")

    def tell(self, text: str) -> None:
        """Write something that is not data: a problem, a hint, progress."""
        self.err.write(harmless(text) + "\n")

    def close(self) -> None:
        """Flush, and let a reader that went away be no error."""
        try:
            self.out.flush()
        except BrokenPipeError:
            # Python flushes stdout once more at exit; give it something that listens.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())


STDOUT = "-"


def to_stdout(pieces: Iterable[bytes], console: Console) -> None:
    """Write a document as it is; on a terminal nothing in it is obeyed."""
    if console.out.isatty():
        text = b"".join(pieces).decode("utf-8", "replace")
        console.lines(text.removesuffix("\n").split("\n"))
        return
    console.out.flush()
    raw = console.out.buffer
    for piece in pieces:
        raw.write(piece)
    raw.flush()


def is_confirmed(console: Console, question: str, *, yes: bool) -> bool:
    """Return whether the person agrees; `yes` is an agreement that the command line gives.

    Without a terminal nobody can answer, so nothing may change, and the console says so.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        console.tell(
            "retold: nothing was changed: there is no terminal to ask on; --yes agrees without a question"
        )
        return False
    console.err.write(f"{question} [y/N] ")
    console.err.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    console.tell("retold: nothing was changed")
    return False
