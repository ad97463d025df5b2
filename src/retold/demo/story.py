"""Stories: scripts of invented conversations, independent of the agent, and their parser."""

import difflib
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal, cast, get_args

import msgspec

AgentName = Literal["claude", "codex", "gemini"]
Form = Literal["lines", "document", "hashed"]
"""The format of Gemini CLI: JSON lines (0.61), one document (0.38), one document in a folder named by a hash (0.28)."""
Kind = Literal["run", "read", "list", "grep", "find", "edit", "write", "web", "fetch", "todo", "agent", "mcp"]
Fate = Literal["done", "failed", "stopped"]
LOOKING = frozenset(("read", "list", "grep", "find", "web", "fetch"))
"""Calls that change nothing, of which models make several at once."""
_STATES = {"x": "completed", ">": "in_progress", " ": "pending"}


class Ask(msgspec.Struct, frozen=True):
    """A prompt of the person."""

    text: str


class Think(msgspec.Struct, frozen=True):
    """A thought of the model."""

    subject: str
    text: str


class Say(msgspec.Struct, frozen=True):
    """An answer of the model."""

    text: str


class StoryCall(msgspec.Struct, frozen=True):
    """A tool call: a command, path, pattern or query, with its result."""

    kind: Kind
    what: str
    body: str = ""
    fate: Fate = "done"
    beats: "tuple[Beat, ...]" = ()

    def todos(self) -> list[tuple[str, str]]:
        """Return the items of a todo list with their states, from lines such as `[x] done`, `[>] doing` and `[ ] to do`."""
        return [(row[4:], _STATES[row[1]]) for row in self.body.splitlines()]

    def on_server(self) -> tuple[str, str, dict[str, Any]]:
        """Return server, tool and arguments of `server.tool {...}`."""
        name, _, arguments = self.what.partition(" ")
        server, _, tool = name.partition(".")
        return server, tool, json.loads(arguments)

    def delegation(self) -> tuple[str, str]:
        """Return agent and task of `agent: task`."""
        agent, _, task = self.what.partition(": ")
        return agent, task


class Notice(msgspec.Struct, frozen=True):
    """A message of the agent's program."""

    kind: Literal["info", "error"]
    text: str


class Shell(msgspec.Struct, frozen=True):
    """A command that the person runs in the agent."""

    command: str
    output: str


class Rewind(msgspec.Struct, frozen=True):
    """The person rewinds the last prompt."""


class Compact(msgspec.Struct, frozen=True):
    """A summary replaces everything so far."""

    summary: str


class Save(msgspec.Struct, frozen=True):
    """The person saves a checkpoint."""

    tag: str


class Later(msgspec.Struct, frozen=True):
    """The conversation pauses for some hours."""

    hours: int


Beat = Ask | Think | Say | StoryCall | Notice | Shell | Rewind | Compact | Save | Later


class Story(msgspec.Struct, frozen=True):
    """A conversation: its beats, and its agent, project, model and time."""

    id: str
    title: str
    agent: AgentName
    project: str
    model: str
    when: str
    beats: tuple[Beat, ...]
    form: Form = "lines"
    marks: frozenset[str] = frozenset()
    forked_from: str | None = None

    def prompts(self) -> tuple[str, ...]:
        """Return the prompts in their order."""
        return tuple(beat.text for beat in self.beats if isinstance(beat, Ask))


_BEAT = re.compile(r"(\w+)([:!?])(?: (.*))?")
_FATES = {":": "done", "!": "failed", "?": "stopped"}
_KINDS = frozenset(get_args(Kind))
_FACTS = ("id", "agent", "project", "model", "when", "form", "marks", "from")


def parse_stories(text: str) -> Iterator[Story]:
    """Yield the stories of a script."""
    for piece in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = piece.partition("\n")
        head, _, body = rest.partition("\n\n")
        yield _story(title, dict(line.split(": ", 1) for line in head.splitlines()), body)


def _story(title: str, facts: dict[str, str], body: str) -> Story:
    if unknown := set(facts) - set(_FACTS):
        raise ValueError(f"{title}: nobody knows {unknown}")
    return Story(
        id=facts["id"],
        title=title.strip(),
        agent=cast("AgentName", facts["agent"]),
        project=facts["project"],
        model=facts["model"],
        when=facts["when"],
        beats=tuple(parse_beats(body)),
        form=cast("Form", facts.get("form", "lines")),
        marks=frozenset(facts.get("marks", "").split()),
        forked_from=facts.get("from"),
    )


def parse_beats(text: str) -> Iterator[Beat]:
    """Yield the beats of a script."""
    for head, body in _blocks(text):
        match = _BEAT.fullmatch(head)
        if match is None:
            raise ValueError(f"no beat: {head}")
        name, mark, words = match[1], match[2], match[3] or ""
        yield from _beats(name, _FATES[mark], words, body)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line without indentation, with the indented lines below it, less two columns."""
    head, body = "", list[str]()
    for line in text.splitlines():
        if line and not line.startswith(" "):
            if head:
                yield head, "\n".join(body).rstrip("\n")
            head, body = line, []
        else:
            body.append(line[2:])
    if head:
        yield head, "\n".join(body).rstrip("\n")


def _beats(name: str, fate: str, words: str, body: str) -> Iterator[Beat]:
    whole = "\n".join(part for part in (words, body) if part)
    if name in _KINDS:
        inner = tuple(parse_beats(body)) if name == "agent" else ()
        yield StoryCall(cast("Kind", name), words, "" if inner else body, cast("Fate", fate), inner)
        return
    match name:
        case "each":
            yield from _each(words, body)
        case "think":
            subject, _, thought = whole.partition(": ")
            yield Think(subject, thought)
        case "notice":
            kind, _, message = whole.partition(": ")
            yield Notice("error" if kind == "error" else "info", message)
        case _:
            yield _plain(name, words, body, whole)


def _plain(name: str, words: str, body: str, whole: str) -> Beat:
    """Return a beat without structure."""
    match name:
        case "you":
            return Ask(whole)
        case "say":
            return Say(whole)
        case "shell":
            return Shell(words, body)
        case "rewind":
            return Rewind()
        case "compact":
            return Compact(whole)
        case "save":
            return Save(words)
        case "later":
            return Later(int(words))
    raise ValueError(f"no beat is called {name}")


def _each(words: str, body: str) -> Iterator[Beat]:
    """Yield the beats of a script for each row, with the words of the row in place of names in braces."""
    rows, _, script = body.partition("\n---\n")
    names = [name.strip() for name in words.split("|")]
    for row in rows.splitlines():
        text = script
        for name, word in zip(names, row.split("|"), strict=True):
            text = text.replace("{" + name + "}", word.strip())
        yield from parse_beats(text)


class StoryDiff(msgspec.Struct, frozen=True):
    """A piece of a file before and after a change."""

    old: str
    new: str

    def marked_lines(self) -> list[str]:
        """Return its lines, each after `-`, `+` or a blank."""
        lines = difflib.ndiff(self.old.splitlines(), self.new.splitlines())
        return [line[0] + line[2:] for line in lines if not line.startswith("?")]

    def unified_diff(self, name: str) -> str:
        """Return the diff that Gemini CLI shows."""
        lines = difflib.unified_diff(
            self.old.splitlines(keepends=True), self.new.splitlines(keepends=True), "a", "b", n=3
        )
        body = "".join(list(lines)[2:])
        rule = "=" * 67
        return f"Index: {name}\n{rule}\n--- {name}\tOriginal\n+++ {name}\tWritten\n{body}"

    def hunks(self) -> list[dict[str, Any]]:
        """Return the hunks that Claude Code records."""
        old, new = len(self.old.splitlines()), len(self.new.splitlines())
        return [
            {"oldStart": 1, "oldLines": old, "newStart": 1, "newLines": new, "lines": self.marked_lines()}
        ]

    def patch(self, path: str) -> str:
        """Return the patch that Codex applies."""
        marked = "".join(f"{line}\n" for line in self.marked_lines())
        return f"*** Begin Patch\n*** Update File: {path}\n@@\n{marked}*** End Patch\n"


def parse_change(body: str) -> StoryDiff:
    """Return the change in lines that begin with `-`, `+` or a blank, and a column after it."""
    old = [line[2:] for line in body.splitlines() if not line.startswith("+")]
    new = [line[2:] for line in body.splitlines() if not line.startswith("-")]
    return StoryDiff("".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))


def stories() -> list[Story]:
    """Return the stories of all scripts; a story comes after the story that it is forked from."""
    folder = files("retold.demo") / "stories"
    scripts = sorted(
        (script for script in folder.iterdir() if script.name.endswith(".story")),
        key=lambda script: script.name,
    )
    return [story for script in scripts for story in parse_stories(script.read_text(encoding="utf-8"))]
