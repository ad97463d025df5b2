"""The absolute paths that a session speaks of: each, and every folder above it, may be its project's root."""

import re
from collections.abc import Iterable, Iterator

from retold.model.entries import Event, Message
from retold.model.parts import Context, ToolCall
from retold.model.session import Session

MOST = 2_000
"""How many different paths of one session are looked at."""

_ABSOLUTE = re.compile(r"/[^/\0]|[A-Za-z]:[\\/]")
_WORKSPACE = re.compile(
    r"Workspace Directories:|currently working in the (?:directory|following directories):"
)
_LONGEST = 4_096
_DEEPEST = 100
"""Longer and deeper texts that begin like a path are no paths, but content that a tool was given."""


def recorded_folder(session: Session) -> str | None:
    """Return the folder that the agent itself said it was working in."""
    for text in _environments(session):
        match = _WORKSPACE.search(text)
        behind = text[match.end() : match.end() + _LONGEST].lstrip(" *\t\r\n-") if match else ""
        if _ABSOLUTE.match(behind):
            return behind.partition("\n")[0].strip()
    return None


def _environments(session: Session) -> Iterator[str]:
    for entry in session.timeline:
        if isinstance(entry, Event):
            if entry.kind == "notice" and entry.text:
                yield entry.text
        else:
            for part in entry.parts:
                if isinstance(part, Context) and part.kind == "environment" and part.text:
                    yield part.text


def workspace_folders(session: Session) -> list[str]:
    """Return the folders that the session was given besides: a subagent's first one is its project's root."""
    folders = session.extra.get("directories")
    return [folder for folder in folders if isinstance(folder, str)] if isinstance(folders, list) else []


def named_paths(session: Session) -> list[str]:
    """Return the absolute paths in the arguments of the session's tool calls, each once and no more than MOST."""
    paths: dict[str, None] = {}
    for entry in session.timeline:
        for part in entry.parts if isinstance(entry, Message) else ():
            for text in _texts(part.arguments) if isinstance(part, ToolCall) else ():
                if _is_path(text):
                    paths[text] = None
                    if len(paths) == MOST:
                        return list(paths)
    return list(paths)


def _is_path(text: str) -> bool:
    """Return whether a text is an absolute path, and not the content of a file that begins like one."""
    return (
        len(text) <= _LONGEST
        and _ABSOLUTE.match(text) is not None
        and "\n" not in text
        and text.count("/") + text.count("\\") <= _DEEPEST
    )


def _texts(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        match pending.pop():
            case str(text):
                yield text
            case dict(inner):
                pending.extend(inner.values())
            case list(inner):
                pending.extend(inner)


def ancestors(path: str) -> Iterator[str]:
    """Yield a path and every folder above it, the deepest first."""
    separator = "\\" if "\\" in path and not path.startswith("/") else "/"
    parts = path.rstrip(separator).split(separator)
    for length in range(len(parts), 1, -1):
        yield separator.join(parts[:length])


def common_folder(paths: Iterable[str]) -> str | None:
    """Return the deepest folder in which all the paths lie; None if that is no folder but the root."""
    folders = [list(ancestors(path))[1:] for path in paths]
    if not folders:
        return None
    shared = set(folders[0]).intersection(*folders[1:])
    return max(shared, key=len, default=None)
