"""The real program in a real terminal: it starts, is used, ends, and leaves the terminal as it was."""

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.person import CLEARED_VARIABLES, Person

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
PATIENCE = 60
_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[@-Z\\-_])")
# A program on a slave side must have the terminal as its own to be asked for its size and signals.
_START = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from retold.cli.main import main
sys.exit(main({arguments!r}))
"""


class Terminal:
    """A terminal of 80 columns and 24 lines, with a program in it."""

    def __init__(self, ours: int, process: "subprocess.Popen[bytes]") -> None:
        self._ours, self.process, self.raw = ours, process, b""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read what is drawn until a text comes."""
        before, ends = len(self.raw), time.monotonic() + PATIENCE
        while text not in self.drawn(before):
            assert time.monotonic() < ends, f"{text!r} is not in {self.drawn(0)[-3000:]!r}"
            self._read()

    def drawn(self, start: int) -> str:
        """Return what was drawn from a place on, without the codes."""
        return _CODES.sub("", self.raw[start:].decode("utf-8", "replace"))

    def end(self) -> int:
        """Read until the program has ended; return its exit code."""
        ends = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < ends, self.drawn(0)[-3000:]
            self._read()
        self._read()
        return self.process.returncode

    def _read(self) -> None:
        if select.select([self._ours], [], [], 0.1)[0]:
            try:
                self.raw += os.read(self._ours, 65536)
            except OSError:  # the other side is closed
                time.sleep(0.05)


@contextmanager
def terminal(env: dict[str, str], *arguments: str, **more: str) -> Iterator[tuple[Terminal, int]]:
    """Start `retold` in a terminal; also give the side on which it runs."""
    import fcntl  # noqa: PLC0415 - not on Windows
    import pty  # noqa: PLC0415
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith((*CLEARED_VARIABLES, "COLORTERM", "NO_COLOR", "TEXTUAL"))
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _START.format(arguments=list(arguments))],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**clean, **env, "TERM": "xterm", **more},
        start_new_session=True,
    )
    try:
        yield Terminal(ours, process), theirs
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_it_starts_is_used_and_leaves_the_terminal_as_it_was(small_env: dict[str, str]) -> None:
    import termios  # noqa: PLC0415 - not on Windows

    with terminal(small_env, "browse") as (seen, theirs):
        before = termios.tcgetattr(theirs)
        seen.wait_for("Draw the dial")
        seen.type("walrus")
        seen.wait_for("1 more in the text")
        seen.type("\r")
        seen.wait_for("everything said")
        seen.type("q")
        seen.wait_for("by name")
        seen.type("\x03")
        assert seen.end() == 0
        assert termios.tcgetattr(theirs) == before
        assert seen.raw.rfind(b"\x1b[?1049l") > seen.raw.rfind(b"\x1b[?1049h")
        assert seen.raw.rfind(b"\x1b[?25h") > seen.raw.rfind(b"\x1b[?25l")


@pytest.mark.parametrize("is_plain", [True, False], ids=["NO_COLOR", "colours"])
def test_colours_are_those_of_the_terminal_or_none(small_env: dict[str, str], *, is_plain: bool) -> None:
    with terminal(small_env, "browse", "moon", **({"NO_COLOR": "1"} if is_plain else {})) as (seen, _):
        seen.wait_for("more in the text")
        seen.type("\x03")
        assert seen.end() == 0
        colours = re.findall(rb"\x1b\[[0-9;]*m", seen.raw)
        wide = [
            code
            for code in colours
            if b"38;2" in code or b"38;5" in code or b"48;2" in code or b"48;5" in code
        ]
        assert not wide  # sixteen colours are all that this terminal has
        basic = [
            code for code in colours if re.search(rb"[\[;](?:3[0-7]|4[0-7]|9[0-7]|10[0-7])(?=[;m])", code)
        ]
        assert bool(basic) is not is_plain


def test_a_resume_hands_the_terminal_to_the_agent(demo_env: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\necho "claude was started with $@"\nexit 7\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with terminal(demo_env, "browse", "--agent", "claude", PATH=path) as (seen, _):
        seen.wait_for("claude")
        seen.type("\x12")  # ctrl+r
        seen.wait_for("&& claude --resume")
        seen.type("\r")
        seen.wait_for("claude was started with --resume")
        assert seen.end() == 7


def test_without_a_terminal_it_says_what_to_do_instead(tmp_path: Path) -> None:
    done = Person(tmp_path / "ann").spawn("browse")
    assert done.code == 2
    assert (
        done.err
        == "retold: browse needs a terminal; without one there are `retold list` and `retold search`\n"
    )
    assert not (tmp_path / "ann" / "retold").exists()
