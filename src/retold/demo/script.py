"""Scripts: stories as text, one beat after the other.

    # Title
    id: oven-probe
    agent: gemini
    project: hearth-sensor
    model: gemini-2.5-pro
    when: 18 09:12                 days ago and the time, or `3h` for hours ago

    you: what the person types
      and goes on, two columns in
    think: Subject: what the model thinks
    say: what it answers
    run: command                   or `run! command` for one that fails, `run? command` for one that the person stops
      what came out

A line at the left begins a beat, and what is indented below belongs to it. The body of `agent` is a script itself; that
of `each` has rows, a line `---`, and a script that is played for each row.
"""

import re
from collections.abc import Iterator
from typing import cast, get_args

from retold.demo.story import (
    AgentName,
    Ask,
    Beat,
    Compact,
    Fate,
    Form,
    Kind,
    Later,
    Notice,
    Rewind,
    Save,
    Say,
    Shell,
    Story,
    StoryCall,
    Think,
)

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
    """Yield each line at the left with what is indented below it, two columns less."""
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
            kind, _, told = whole.partition(": ")
            yield Notice("error" if kind == "error" else "info", told)
        case _:
            yield _plain(name, words, body, whole)


def _plain(name: str, words: str, body: str, whole: str) -> Beat:
    """Return a beat that is nothing but its words."""
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
    """Play a script for each row, with the row's words in place of their names in braces."""
    rows, _, script = body.partition("\n---\n")
    names = [name.strip() for name in words.split("|")]
    for row in rows.splitlines():
        text = script
        for name, word in zip(names, row.split("|"), strict=True):
            text = text.replace("{" + name + "}", word.strip())
        yield from parse_beats(text)
