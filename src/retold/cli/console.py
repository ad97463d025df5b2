"""Output of commands: data on stdout, notices on stderr, without characters that control a terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO


WIDTH = 80
ANSI_CODES = {
    "title": "1",
    "faint": "2",
    "you": "1;36",
    "agent": "1;35",
    "tool": "34",
    "bad": "31",
    "match": "1;33",
    "bar": "36",
}


def escape_for_terminal(text: str) -> str:
    """Return text with every hidden or control character as a visible sign: a transcript must not control a terminal."""
    if _is_plain(text):
        return text
    from retold.export.text.formatting import escape_control_chars

    return escape_control_chars(text)


_PLAIN_ASCII = bytes((9, 10, *range(32, 127)))
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10))
)
"""Characters that are escaped although Python takes them for printable; besides them, all from U+E0000 on."""


def _is_plain(text: str) -> bool:
    """Return whether a text has nothing to escape, without importing `re` as the functions that escape it do."""
    rest = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN_ASCII)
    characters = set(rest.decode("utf-8", "surrogatepass"))
    return all([one.isprintable() and one < "\U000e0000" and one not in _INVISIBLE for one in characters])


def _escape_json(line: str) -> str:
    """Return JSON with every hidden or control character escaped."""
    if _is_plain(line):
        return line
    from retold.export.text.formatting import escape_json

    return escape_json(line)


def terminal_columns(env: Mapping[str, str], out: TextIO) -> int:
    """Return the width of the terminal, or 80 without one. `shutil` can do this; its import takes a quarter of a start."""
    columns = env.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError, AttributeError):
        return WIDTH


class Console:
    """The output of a command."""

    def __init__(self, env: Mapping[str, str], out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.columns = terminal_columns(env, self.out)
        self.has_color = self.out.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"

    def write_line(self, text: str, style: str = "plain") -> None:
        """Write a line of text for people."""
        text = escape_for_terminal(text)
        code = ANSI_CODES.get(style) if self.has_color and text else None
        self.out.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else text + "\n")

    def write_lines(self, lines: Iterable[str]) -> None:
        """Write many plain lines at once."""
        text = escape_for_terminal("\n".join(lines))
        self.out.write(f"{text}\n" if text else "")

    def write_line_in_pieces(self, pieces: Iterable[str]) -> None:
        """Write one plain line piece by piece; a CSV field in it may hold line ends."""
        for piece in pieces:
            self.out.write(escape_for_terminal(piece))
        self.out.write("\n")

    def write_styled(self, pieces: Iterable[tuple[str, str]]) -> None:
        """Write one line of styled pieces; line ends in them become blanks."""
        for style, text in pieces:
            shown = escape_for_terminal(text).replace("\n", " ")
            code = ANSI_CODES.get(style) if self.has_color and shown else None
            self.out.write(f"\x1b[{code}m{shown}\x1b[0m" if code else shown)
        self.out.write("\n")

    def write_json(self, line: bytes) -> None:
        """Write one JSON object as a line."""
        self.write_json_in_pieces((line,))

    def write_json_in_pieces(self, pieces: Iterable[bytes]) -> None:
        """Write one JSON object as a line, piece by piece."""
        for piece in pieces:
            self.out.write(_escape_json(piece.decode()))
        self.out.write("\n")

    def notice(self, text: str) -> None:
        """Write a problem, a hint or a result to stderr."""
        self.err.write(escape_for_terminal(text) + "\n")

    def close(self) -> None:
        """Flush stdout; a closed pipe is no error."""
        try:
            self.out.flush()
        except BrokenPipeError:
            # Python flushes stdout once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())


STDOUT = "-"


def write_to_stdout(pieces: Iterable[bytes], console: Console) -> None:
    """Write a document byte for byte, or escaped if stdout is a terminal."""
    if console.out.isatty():
        text = b"".join(pieces).decode("utf-8", "replace")
        console.write_lines(text.removesuffix("\n").split("\n"))
        return
    console.out.flush()
    raw = console.out.buffer
    for piece in pieces:
        raw.write(piece)
    raw.flush()


def confirm(console: Console, question: str, *, yes: bool) -> bool:
    """Return whether the person answers yes, or `yes` is set; without a terminal print a notice and return False."""
    if yes:
        return True
    if not sys.stdin.isatty():
        console.notice(
            "retold: nothing was changed: there is no terminal to ask on; --yes agrees without a question"
        )
        return False
    console.err.write(f"{question} [y/N] ")
    console.err.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    console.notice("retold: nothing was changed")
    return False
