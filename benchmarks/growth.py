"""A home with two large sessions that grow."""

import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from corpora import CACHE, SMALL, Corpus

LINES = Corpus("gemini-jsonl", 1, 22, seed=43)
WHOLE = Corpus("gemini", 1, 22, seed=44)
NEW = 5
_RNG = random.Random(5)  # noqa: S311 - steady words are wanted, not secret ones


def make_grown_home() -> Path:
    """Return a new home of many small sessions and two large ones."""
    home = CACHE / "work" / "grown-home"
    shutil.rmtree(home, ignore_errors=True)
    for part in (SMALL, LINES, WHOLE):
        shutil.copytree(part.home / ".gemini", home / ".gemini", dirs_exist_ok=True)
    return home


class JsonLines:
    """A session that grows by lines at its end."""

    def __init__(self, home: Path) -> None:
        self.file = home / LINES.files[0].relative_to(LINES.home)

    @property
    def megabytes(self) -> float:
        """The size of the file."""
        return self.file.stat().st_size / 1e6

    def grow(self) -> str:
        """Add messages, each with a line of metadata; return a word that only they contain."""
        word = _word()
        with self.file.open("ab") as stream:
            for message in _messages(word):
                stream.write(orjson.dumps(message) + b"\n")
                stream.write(orjson.dumps({"$set": {"lastUpdated": message["timestamp"]}}) + b"\n")
        return word


class WholeFile:
    """A session that is rewritten whenever it grows."""

    def __init__(self, home: Path) -> None:
        self.file = home / WHOLE.files[0].relative_to(WHOLE.home)

    @property
    def megabytes(self) -> float:
        """The size of the file."""
        return self.file.stat().st_size / 1e6

    def grow(self) -> str:
        """Rewrite the file with more messages; return a word that only they contain."""
        word = _word()
        session = orjson.loads(self.file.read_bytes())
        session["messages"] += _messages(word)
        self.file.write_bytes(orjson.dumps(session, option=orjson.OPT_INDENT_2))
        return word


def _word() -> str:
    return "grown" + "".join(_RNG.choices("bcdfghjklmnp", k=9))


def _messages(word: str) -> list[dict[str, Any]]:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    tokens = {"input": 900, "output": 20, "cached": 0, "thoughts": 0, "tool": 0, "total": 920}
    messages = []
    for number in range(NEW):
        message: dict[str, Any] = {"id": f"{word}-{number}", "timestamp": at, "type": "user"}
        message["content"] = f"{word}: and what became of step {number}?"
        if number % 2:
            message |= {"type": "gemini", "thoughts": [], "tokens": tokens, "model": "gemini-2.5-pro"}
        messages.append(message)
    return messages
