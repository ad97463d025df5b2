"""Generated homes, kept in the cache outside of the repository, and the messages in them."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

SHARED = Path(__file__).resolve().parents[2] / "shared"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retold-bench"
GENERATOR = SHARED / "truth" / "make_big_corpus.py"
SEED = 42
REFERENCED = "\n--- Content from referenced files ---"
PATTERNS = (
    ".gemini/tmp/*/chats/session-*",
    ".claude/projects/*/*.jsonl",
    ".codex/sessions/*/*/*/*.jsonl",
)


class Corpus(NamedTuple):
    """The parameters of a generated home."""

    form: str
    sessions: int
    megabytes: int
    seed: int = SEED

    @property
    def name(self) -> str:
        """The name of its folder."""
        seed = "" if self.seed == SEED else f"-{self.seed}"
        return f"{self.form}-{self.sessions}-{self.megabytes}{seed}"

    @property
    def home(self) -> Path:
        """The folder, generated if needed."""
        home = CACHE / self.name
        if not (home / "needles.json").exists():
            home.mkdir(parents=True, exist_ok=True)
            sizes = (str(self.sessions), str(self.megabytes))
            maker: list[str | Path] = [sys.executable, GENERATOR, home, *sizes]
            options = ("--fmt", self.form, "--seed", str(self.seed))
            subprocess.run([*maker, *options], check=True, stdout=subprocess.DEVNULL)
        return home

    @property
    def files(self) -> list[Path]:
        """The session files."""
        return sorted(file for pattern in PATTERNS for file in self.home.glob(pattern))

    @property
    def needles(self) -> list[dict[str, str]]:
        """The queries whose answers were hidden in the corpus, with their sessions."""
        needles: list[dict[str, str]] = json.loads((self.home / "needles.json").read_bytes())
        return needles

    def __str__(self) -> str:
        return f"{self.sessions:,} sessions, {self.megabytes:,} MB"


SMALL = Corpus("gemini", 200, 40)
IS_TRIAL = bool(os.environ.get("RETOLD_BENCH_TRIAL"))
"""Whether this run only tests the benchmarks, on small corpora."""
MEDIUM = SMALL if IS_TRIAL else Corpus("gemini", 2000, 400)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def read_messages(file: Path) -> Iterator[tuple[str, str]]:
    """Yield role and text of the prompts and answers in a session in one JSON document, without referenced files."""
    for message in orjson.loads(file.read_bytes())["messages"]:
        if message["type"] in {"user", "gemini"}:
            yield message["type"], _text(message["content"]).partition(REFERENCED)[0]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part["text"] for part in content)


@cache
def plain_words() -> frozenset[str]:
    """Return the English words that the generator puts into every session."""
    spec = importlib.util.spec_from_file_location("make_big_corpus", GENERATOR)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(GENERATOR)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    return frozenset(maker.ENG)
