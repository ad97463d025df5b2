"""Made-up homes, made once and kept outside the repository, and what their files say."""

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
MAKER = SHARED / "truth" / "make_big_corpus.py"
PRICED_MAKER = SHARED / "truth" / "make_priced_corpus.py"
SEED = 42
REFERENCED = "\n--- Content from referenced files ---"
PATTERNS = (
    ".gemini/tmp/*/chats/session-*",
    ".claude/projects/*/*.jsonl",
    ".codex/sessions/*/*/*/*.jsonl",
)


class Corpus(NamedTuple):
    """What a made-up home is made of."""

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
        """The folder, made if it is not there."""
        home = CACHE / self.name
        if not (home / "needles.json").exists():
            home.mkdir(parents=True, exist_ok=True)
            sizes = (str(self.sessions), str(self.megabytes))
            maker: list[str | Path] = [sys.executable, MAKER, home, *sizes]
            options = ("--fmt", self.form, "--seed", str(self.seed))
            subprocess.run([*maker, *options], check=True, stdout=subprocess.DEVNULL)
        return home

    @property
    def files(self) -> list[Path]:
        """Its session files."""
        return sorted(file for pattern in PATTERNS for file in self.home.glob(pattern))

    @property
    def needles(self) -> list[dict[str, str]]:
        """What was hidden in it: queries, and the sessions that they mean."""
        needles: list[dict[str, str]] = json.loads((self.home / "needles.json").read_bytes())
        return needles

    def __str__(self) -> str:
        return f"{self.sessions:,} sessions, {self.megabytes:,} MB"


class Priced(NamedTuple):
    """What a made-up home is made of whose tokens and cost are known: clean sessions of Gemini CLI, all of one size."""

    sessions: int
    kilobytes: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"priced-{self.sessions}-{self.kilobytes}"

    @property
    def home(self) -> Path:
        """The folder, made if it is not there."""
        home = CACHE / self.name
        if not (home / ".gemini" / "projects.json").exists():
            sizes = (str(self.sessions), str(self.kilobytes))
            subprocess.run([sys.executable, PRICED_MAKER, home, *sizes], check=True)
        return home

    @property
    def megabytes(self) -> int:
        """About how large it is."""
        return round(size_of(self.home / ".gemini") / 1e6)

    def __str__(self) -> str:
        return f"{self.sessions:,} sessions, {self.megabytes:,} MB"


SMALL = Corpus("gemini", 200, 40)
IS_TRIAL = bool(os.environ.get("RETOLD_BENCH_TRIAL"))
"""Whether the bench itself is tried: on a small corpus, whose numbers mean nothing."""
MEDIUM = SMALL if IS_TRIAL else Corpus("gemini", 2000, 400)
PRICED = Priced(100, 100) if IS_TRIAL else Priced(1000, 100)
LARGE = Corpus("gemini", 300, 60) if IS_TRIAL else Corpus("gemini", 10_000, 2000)


def corpus(form: str, sessions: int, megabytes: int) -> list[Path]:
    """Return the session files of a made-up home."""
    return Corpus(form, sessions, megabytes).files


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def said(file: Path) -> Iterator[tuple[str, str]]:
    """Yield who said what in a whole-file session: prompts and answers, without what was pasted from files."""
    for message in orjson.loads(file.read_bytes())["messages"]:
        if message["type"] in {"user", "gemini"}:
            yield message["type"], _text(message["content"]).partition(REFERENCED)[0]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part["text"] for part in content)


@cache
def plain_words() -> frozenset[str]:
    """Return the English words that the maker of corpora strews everywhere."""
    spec = importlib.util.spec_from_file_location("make_big_corpus", MAKER)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(MAKER)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    return frozenset(maker.ENG)
