"""Thousands of small conversations, queries about them, and a scan of their texts that says what each query means.

The scan reads the texts as they were made up. It shares no code with the search that it checks.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from retold.archive import store
from support.conversation_files import (
    ROOT,
    Turn,
    as_lines,
    claude_key,
    claude_records,
    codex_key,
    codex_records,
    dice,
    thread,
    uuid,
    write_file,
)
from support.gemini_home import DAY

PROJECTS = ("harbour", "lantern", "orchard", "quarry")
NAMES = ("parseTideTable", "httpErrorServer", "TideWindow", "renderMapTile", "getMoonPhase")
"""They begin a text and end with no other word, so that no phrase runs into them."""
CJK = ("潮汐表修正", "東京タワー", "架构图")
_SYLLABLES = ("fo", "do", "ki", "lu", "me", "no", "ra", "su", "ti", "ve")
WORDS = (
    "tide",
    "map",
    "error",
    "moon",
    *(first + second + "n" for first in _SYLLABLES for second in _SYLLABLES),
)
_WEIGHTS = [1 / (place + 1) for place in range(len(WORDS))]
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Text(NamedTuple):
    """One text of a conversation: a prompt, what a tool gave back, or an answer."""

    kind: str
    text: str


class Talk(NamedTuple):
    """A conversation."""

    key: str
    project: str
    tool: str
    texts: Sequence[Text]


def write_talks(home: Path, count: int) -> list[Talk]:
    """Write conversations of Claude Code and Codex CLI, and return what is in them."""
    return [_write(home, number) for number in range(1, count + 1)]


def _write(home: Path, number: int) -> Talk:
    chance = dice(number)
    turns = [Turn(*(_said(chance) for _ in range(3))) for _ in range(chance.choice((1, 1, 1, 2)))]
    project, is_claude = chance.choice(PROJECTS), number % 3 > 0
    records = claude_records(number, turns) if is_claude else codex_records(number, turns)
    day = f"2026-{chance.randrange(1, 4):02}-{chance.randrange(1, 10):02}"
    lines = as_lines(records).replace(ROOT, f"/home/ann/dev/{project}").replace(DAY, day)
    if is_claude:
        write_file(home / f".claude/projects/-home-ann-dev-{project}" / f"{uuid(number)}.jsonl", lines)
    else:
        write_file(home / f".codex/sessions/2026/01/01/rollout-{day}T09-00-00-{thread(number)}.jsonl", lines)
    kinds = ("user", "output", "assistant")
    texts = [Text(kind, text) for turn in turns for kind, text in zip(kinds, turn, strict=True)]
    key = claude_key(number) if is_claude else codex_key(number)
    return Talk(key, project, "Bash" if is_claude else "shell", texts)


def _said(chance: Random) -> str:
    words = chance.choices(WORDS, _WEIGHTS, k=chance.randrange(2, 10))
    if chance.random() < 0.05:
        words.insert(0, chance.choice(NAMES))
    if chance.random() < 0.03:
        words.append(chance.choice(CJK))
    return " ".join(words)


# Queries and what they mean -----------------------------------------------------------------------------------------


class Sought(NamedTuple):
    """A query as it is typed, and as the scan takes it."""

    typed: str
    wanted: tuple[tuple[str, ...], ...]
    """Clauses that must hold, each with its alternatives: `word`, `word*` or `several words`."""
    unwanted: tuple[str, ...] = ()
    role: str = ""
    tool: str = ""
    project: str = ""


def queries(count: int) -> list[Sought]:
    """Return queries of every kind, the same ones every time."""
    chance = dice(7)
    found: dict[str, Sought] = {}
    while len(found) < count:
        one = _query(chance)
        found.setdefault(one.typed, one)
    return list(found.values())


def _query(chance: Random) -> Sought:
    common, rare = chance.choices(WORDS[:12], k=3), chance.choices(WORDS[12:], k=3)
    word = chance.choice((common[0], rare[0]))
    project, role, tool = chance.choice(PROJECTS), chance.choice(("user", "assistant")), "Bash"
    several = chance.sample((*common, *rare), chance.choice((2, 3)))
    phrase = " ".join((common[0], chance.choice((common[1], rare[1]))))
    run = chance.choice(CJK)
    start = chance.randrange(len(run) - 1)
    part = run[start : start + chance.choice((2, 3))]
    return chance.choice(
        (
            Sought(word, ((word,),)),
            Sought(" ".join(several), tuple((one,) for one in several)),
            Sought(f'"{phrase}"', ((phrase,),)),
            Sought(f'"{phrase}" {rare[2]}', ((phrase,), (rare[2],))),
            Sought(f"{word[:3]}*", ((f"{word[:3]}*",),)),
            Sought(f"{word[:2]}* {common[1]}", ((f"{word[:2]}*",), (common[1],))),
            Sought(f"{common[0]} -{common[1]}", ((common[0],),), (common[1],)),
            Sought(f"{rare[0]} {common[1]} -{rare[2]}", ((rare[0],), (common[1],)), (rare[2],)),
            Sought(f"{rare[0]} OR {rare[1]} {common[2]}", ((rare[0], rare[1]), (common[2],))),
            Sought(f"{word} role:{role}", ((word,),), role=role),
            Sought(f"{word} tool:{tool}", ((word,),), tool=tool),
            Sought(
                f"{' '.join(several)} project:{project}", tuple((one,) for one in several), project=project
            ),
            Sought(part, ((part,),)),
            Sought(f"{part} {common[0]}", ((part,), (common[0],))),
            Sought(chance.choice(NAMES), ()),
            Sought(chance.choice(("tide", "moon", "server", "phase", "render", "window")), ()),
            Sought(f"{chance.choice(('moon', 'phase', 'tile'))} {rare[1]}", ()),
        )
    )


def meant(talks: Sequence[Talk], sought: Sought) -> set[str]:
    """Return the keys of the conversations that match: each clause holds in some text, and no text holds an excluded word."""
    wanted = sought.wanted or tuple((one,) for one in sought.typed.split())
    return {
        talk.key
        for talk in talks
        if sought.project in ("", talk.project) and _holds_all(talk, wanted, sought)
    }


def _holds_all(talk: Talk, wanted: Sequence[Sequence[str]], sought: Sought) -> bool:
    texts = [text for kind, text in talk.texts if _is_of(talk, kind, sought)]
    if any(_holds(text, one) for _, text in talk.texts for one in sought.unwanted):
        return False
    return all(any(_holds(text, one) for text in texts for one in clause) for clause in wanted)


def _is_of(talk: Talk, kind: str, sought: Sought) -> bool:
    role = "assistant" if kind == "output" else kind
    is_of_tool = not sought.tool or (kind == "output" and talk.tool == sought.tool)
    return is_of_tool and sought.role in ("", role)


def _holds(text: str, one: str) -> bool:
    if not one.isascii():
        return one in text
    words = [word.lower() for word in text.split()]
    if one.endswith("*"):
        return any(word.startswith(one[:-1].lower()) for word in words)
    if " " in one:
        return f" {one.lower()} " in f" {' '.join(words)} "
    parts = [part.lower() for word in text.split() for part in _HUMP.split(word)]
    return one.lower() in (*words, *parts)


# Files of the index -------------------------------------------------------------------------------------------------


@contextmanager
def index_files(count: int) -> Iterator[None]:
    """Let the text index consist of so many files, also for modules that are imported inside."""
    usual = store.SHARDS
    _set_index_files(count)
    try:
        yield
    finally:
        _set_index_files(usual)


def _set_index_files(count: int) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("retold.") and hasattr(module, "SHARDS"):
            vars(module)["SHARDS"] = count
