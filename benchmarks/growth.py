"""A home with large sessions of every form, which grow."""

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from corpora import CACHE, SMALL, Corpus

LARGE = (
    Corpus("gemini-jsonl", 1, 22, seed=43),
    Corpus("claude", 1, 22, seed=45),
    Corpus("codex", 1, 22, seed=46),
    Corpus("gemini", 1, 22, seed=44),
)
NEW = 5
Json = dict[str, Any]
_RNG = random.Random(5)  # noqa: S311 - steady words are wanted, not secret ones


def make_grown_home() -> Path:
    """Return a new home of many small sessions and the large ones."""
    home = CACHE / "work" / "grown-home"
    shutil.rmtree(home, ignore_errors=True)
    for corpus in (SMALL, *LARGE):
        for folder in corpus.home.glob(".*"):
            shutil.copytree(folder, home / folder.name, dirs_exist_ok=True)
    return home


class GrowingFile:
    """A session that grows: by lines at its end, or rewritten as a whole."""

    def __init__(self, home: Path, corpus: Corpus) -> None:
        self.path = home / corpus.files[0].relative_to(corpus.home)
        self.is_whole = corpus.form == "gemini"
        self._make = MAKERS[corpus.form]

    @property
    def megabytes(self) -> float:
        """The size of the file."""
        return self.path.stat().st_size / 1e6

    def grow(self) -> str:
        """Add messages; return a word that only they contain."""
        word = "grown" + "".join(_RNG.choices("bcdfghjklmnp", k=9))
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        if self.is_whole:
            session = orjson.loads(self.path.read_bytes())
            session["messages"] += self._make(word, now, {})
            self.path.write_bytes(orjson.dumps(session, option=orjson.OPT_INDENT_2))
            return word
        with self.path.open("r+b") as stream:
            stream.seek(-min(self.path.stat().st_size, 1 << 20), 2)
            last = orjson.loads(stream.read().splitlines()[-1])
            stream.writelines(orjson.dumps(record) + b"\n" for record in self._make(word, now, last))
        return word


def _gemini(word: str, now: str, _: Json) -> Iterator[Json]:
    tokens = {"input": 900, "output": 20, "cached": 0, "thoughts": 0, "tool": 0, "total": 920}
    for number in range(NEW):
        message: Json = {
            "id": f"{word}-{number}",
            "timestamp": now,
            "type": "user",
            "content": _text(word, number),
        }
        if number % 2:
            message |= {"type": "gemini", "thoughts": [], "tokens": tokens, "model": "gemini-2.5-pro"}
        yield message


def _gemini_lines(word: str, now: str, last: Json) -> Iterator[Json]:
    """Yield messages, each with a line of metadata."""
    for message in _gemini(word, now, last):
        yield from (message, {"$set": {"lastUpdated": now}})


def _claude(word: str, now: str, last: Json) -> Iterator[Json]:
    """Yield messages that continue the last one."""
    about = {
        name: last[name] for name in ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch")
    }
    parent = last["uuid"]
    usage = {
        "input_tokens": 900,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 20,
    }
    for number in range(NEW):
        message: Json = {"role": "user", "content": _text(word, number)}
        record: Json = {
            "parentUuid": parent,
            **about,
            "type": "user",
            "uuid": f"{word}-{number}",
            "timestamp": now,
        }
        if number % 2:
            content = [{"type": "text", "text": _text(word, number)}]
            message = {"role": "assistant", "id": f"msg_{word}{number}", "type": "message", "model": "claude-sonnet-4-20250514", "content": content, "usage": usage}  # fmt: skip
            record |= {"type": "assistant", "requestId": f"req_{word}{number}"}
        yield record | {"message": message}
        parent = record["uuid"]


def _codex(word: str, now: str, _: Json) -> Iterator[Json]:
    """Yield messages: each prompt as an item and as an event."""
    for number in range(NEW):
        text = _text(word, number)
        role, kind = ("assistant", "output_text") if number % 2 else ("user", "input_text")
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        yield {"timestamp": now, "type": "response_item", "payload": item}
        if role == "user":
            yield {
                "timestamp": now,
                "type": "event_msg",
                "payload": {"type": "user_message", "message": text},
            }


def _text(word: str, number: int) -> str:
    return f"{word}: and what became of step {number}?"


MAKERS: dict[str, Callable[[str, str, Json], Iterator[Json]]] = {
    "gemini": _gemini,
    "gemini-jsonl": _gemini_lines,
    "claude": _claude,
    "codex": _codex,
}
"""The function that makes the new records of a form: of a word, the time and the last record."""
