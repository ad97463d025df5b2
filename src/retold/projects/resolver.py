"""Which project a session belongs to, and how we know."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from retold.model.session import Clue, Context, Event, Message, Project, Session, ToolCall, root_hash
from retold.projects.matching import ORDER

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


MARKS = ("GEMINI.md", ".gemini", "CLAUDE.md", "AGENTS.md", ".git")
"""What lies in a project's root and seldom elsewhere."""
_SEPARATORS = re.compile(r"[/\\]")


class Atlas:
    """What is known of where projects lie; it learns while sessions are looked up in it."""

    def __init__(self, clues: Mapping[str, Iterable[Clue]], remembered: Mapping[str, str], here: str) -> None:
        """Take the clues of each home by the folder it lies in, known hashes, and the working directory."""
        self.homes = list(clues)
        self.by_name: dict[tuple[str, str], Clue] = {}
        self.by_hash = {**remembered, root_hash(here): here}
        self.proven: dict[str, str] = {}
        """Roots that were found in what sessions say."""
        for home, told in clues.items():
            for clue in sorted(told, key=lambda clue: ORDER.index(clue.evidence), reverse=True):
                self.by_hash[root_hash(clue.root)] = clue.root
                if clue.native_key is not None:
                    self.by_name[home, clue.native_key] = clue

    def project(self, session: Session) -> Project:
        """Return the session's project with the best evidence there is."""
        known = session.project
        placed = self.placed(known, [source.path for source in session.sources])
        if placed is not None:
            return placed
        root = self._found(session)
        if root is not None:
            return Project(root, known.native_key, known.hash, "hash")
        if known.hash is not None:  # every folder that the session names has another hash
            return known
        folder = recorded_folder(session)
        if folder is not None:
            return Project(folder, known.native_key, root_hash(folder), "recorded")
        told = next(iter(workspace_folders(session)), None)
        guess = told or _marked(common_folder(named_paths(session)))
        return Project(guess, known.native_key, None, "guessed") if guess else known

    def placed(self, known: Project, paths: Sequence[str]) -> Project | None:
        """Return a project as far as it is known without what was said in it: by where the files of a session lie."""
        if known.root is not None:  # the agent itself wrote it down
            return known
        named = self._named(known, paths)
        if named is not None:
            return Project(named.root, known.native_key, known.hash or root_hash(named.root), named.evidence)
        root = None if known.hash is None else self.by_hash.get(known.hash)
        return None if root is None else Project(root, known.native_key, known.hash, "hash")

    def _named(self, known: Project, paths: Sequence[str]) -> Clue | None:
        """Return what the homes say about the folders in which the session's files lie."""
        found = {clue for path in paths for clue in self._of_folders(path)}
        wanted = known.hash
        folders = {_SEPARATORS.sub("/", path).rpartition("/")[0] for path in paths}
        if wanted is not None and len(folders) > 1:
            # A file that was written back may lie in the folder of another project.
            found = {clue for clue in found if root_hash(clue.root) == wanted}
        return min(found, key=lambda clue: (ORDER.index(clue.evidence), clue.root), default=None)

    def _of_folders(self, path: str) -> Iterator[Clue]:
        for home in self.homes:
            if path.startswith(home) and path[len(home) : len(home) + 1] in ("/", "\\"):
                for folder in _SEPARATORS.split(path[len(home) :])[1:-1]:
                    if (home, folder) in self.by_name:
                        yield self.by_name[home, folder]

    def _found(self, session: Session) -> str | None:
        """Return the root that has the hash of a session's project, among all folders that the session names."""
        wanted = session.project.hash
        if wanted is None:
            return None
        folder = recorded_folder(session)
        candidates = [*([folder] if folder else []), *workspace_folders(session)]
        tried: set[str] = set()
        for path in (*candidates, *named_paths(session)):
            for root in ancestors(path):
                if root in tried:
                    break  # and so was every folder above it
                tried.add(root)
                if root_hash(root) == wanted:
                    self.by_hash[wanted] = self.proven[wanted] = root
                    return root
        return None


def _marked(folder: str | None) -> str | None:
    """Return the folder at or above a guess in which someone put an agent's own files, if this machine has one."""
    for above in ancestors(folder) if folder else ():
        if any(os.path.exists(os.path.join(above, mark)) for mark in MARKS):
            return above
    return folder
