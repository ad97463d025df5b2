"""Projects of sessions: the folder in which a session took place, with the evidence for it."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from retold.model.session import Clue, Context, Event, Message, Project, Session, ToolCall, root_hash
from retold.projects.matching import EVIDENCE_ORDER

MOST_PATHS = 2_000
"""Different paths of one session that are looked at."""
ROOT_MARKERS = ("GEMINI.md", ".gemini", "CLAUDE.md", "AGENTS.md", ".git")
"""Files and folders that are usually in a project's root."""
_ABSOLUTE = re.compile(r"/[^/\0]|[A-Za-z]:[\\/]")
_WORKSPACE = re.compile(
    r"Workspace Directories:|currently working in the (?:directory|following directories):"
)
_SEPARATORS = re.compile(r"[/\\]")
_LONGEST, _DEEPEST = 4_096, 100
"""Characters and separators of the longest path. Longer texts that begin like a path are contents that a tool was given."""


def recorded_folder(session: Session) -> str | None:
    """Return the folder that the agent recorded as its working folder."""
    for text in _environment_texts(session):
        match = _WORKSPACE.search(text)
        after = text[match.end() : match.end() + _LONGEST].lstrip(" *\t\r\n-") if match else ""
        if _ABSOLUTE.match(after):
            return after.partition("\n")[0].strip()
    return None


def _environment_texts(session: Session) -> Iterator[str]:
    for entry in session.timeline:
        if isinstance(entry, Event):
            if entry.kind == "notice" and entry.text:
                yield entry.text
        else:
            for part in entry.parts:
                if isinstance(part, Context) and part.kind == "environment" and part.text:
                    yield part.text


def workspace_folders(session: Session) -> list[str]:
    """Return the additional folders of a session; for a subagent, the first is the root of its project."""
    folders = session.extra.get("directories")
    return [folder for folder in folders if isinstance(folder, str)] if isinstance(folders, list) else []


def named_paths(session: Session) -> list[str]:
    """Return the absolute paths in the arguments of a session's tool calls, each once, MOST_PATHS at most."""
    paths: dict[str, None] = {}
    for entry in session.timeline:
        for part in entry.parts if isinstance(entry, Message) else ():
            for text in _texts(part.arguments) if isinstance(part, ToolCall) else ():
                if _is_path(text):
                    paths[text] = None
                    if len(paths) == MOST_PATHS:
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
    """Return the deepest folder that contains all the paths; None if that is only the root."""
    folders = [list(ancestors(path))[1:] for path in paths]
    if not folders:
        return None
    shared = set(folders[0]).intersection(*folders[1:])
    return max(shared, key=len, default=None)


class ProjectResolver:
    """Resolves the projects of sessions, and learns roots while it does."""

    def __init__(self, clues: Mapping[str, Iterable[Clue]], roots: Mapping[str, str], here: str) -> None:
        """Take the clues of each home by its folder, known roots by hash, and the working directory."""
        self.homes = list(clues)
        self.by_name: dict[tuple[str, str], Clue] = {}
        self.by_hash = {**roots, root_hash(here): here}
        self.found_roots: dict[str, str] = {}
        """Roots that were found in sessions, by hash."""
        for home, found in clues.items():
            for clue in sorted(found, key=lambda clue: EVIDENCE_ORDER.index(clue.evidence), reverse=True):
                self.by_hash[root_hash(clue.root)] = clue.root
                if clue.native_key is not None:
                    self.by_name[home, clue.native_key] = clue

    def resolve(self, session: Session) -> Project:
        """Return the project of a session by the best evidence."""
        known = session.project
        resolved = self.resolve_by_files(known, [source.path for source in session.sources])
        if resolved is not None:
            return resolved
        root = self._find_root(session)
        if root is not None:
            return Project(root, known.native_key, known.hash, "hash")
        if known.hash is not None:  # every folder in the session has another hash
            return known
        folder = recorded_folder(session)
        if folder is not None:
            return Project(folder, known.native_key, root_hash(folder), "recorded")
        workspace = next(iter(workspace_folders(session)), None)
        guess = workspace or _marked_root(common_folder(named_paths(session)))
        return Project(guess, known.native_key, None, "guessed") if guess else known

    def resolve_by_files(self, known: Project, paths: Sequence[str]) -> Project | None:
        """Return the project of a session as far as the paths of its files tell it."""
        if known.root is not None:  # recorded by the agent
            return known
        clue = self._best_clue(known, paths)
        if clue is not None:
            return Project(clue.root, known.native_key, known.hash or root_hash(clue.root), clue.evidence)
        root = None if known.hash is None else self.by_hash.get(known.hash)
        return None if root is None else Project(root, known.native_key, known.hash, "hash")

    def _best_clue(self, known: Project, paths: Sequence[str]) -> Clue | None:
        """Return the best clue of the homes about the folders of a session's files."""
        clues = {clue for path in paths for clue in self._clues_for(path)}
        folders = {_SEPARATORS.sub("/", path).rpartition("/")[0] for path in paths}
        if known.hash is not None and len(folders) > 1:
            # A restored file may be in the folder of another project.
            clues = {clue for clue in clues if root_hash(clue.root) == known.hash}
        return min(clues, key=lambda clue: (EVIDENCE_ORDER.index(clue.evidence), clue.root), default=None)

    def _clues_for(self, path: str) -> Iterator[Clue]:
        for home in self.homes:
            if path.startswith(home) and path[len(home) : len(home) + 1] in ("/", "\\"):
                for folder in _SEPARATORS.split(path[len(home) :])[1:-1]:
                    if (home, folder) in self.by_name:
                        yield self.by_name[home, folder]

    def _find_root(self, session: Session) -> str | None:
        """Return the folder in a session whose hash is that of its project, or the folder above with that hash."""
        project_hash = session.project.hash
        if project_hash is None:
            return None
        folder = recorded_folder(session)
        candidates = [*([folder] if folder else []), *workspace_folders(session)]
        tried: set[str] = set()
        for path in (*candidates, *named_paths(session)):
            for root in ancestors(path):
                if root in tried:
                    break  # and so was every folder above it
                tried.add(root)
                if root_hash(root) == project_hash:
                    self.by_hash[project_hash] = self.found_roots[project_hash] = root
                    return root
        return None


def _marked_root(folder: str | None) -> str | None:
    """Return the folder at or above a guess with a root marker, if it is on this machine; else the guess."""
    for above in ancestors(folder) if folder else ():
        if any(os.path.exists(os.path.join(above, marker)) for marker in ROOT_MARKERS):
            return above
    return folder
