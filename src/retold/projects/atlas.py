"""Which project a session belongs to, and how we know."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from retold.model.project import Clue, Project, root_hash
from retold.model.session import Session
from retold.projects.matching import ORDER
from retold.projects.paths import ancestors, common_folder, named_paths, recorded_folder, workspace_folders

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
