"""The folder in which Gemini CLI looks for a project's sessions, found as the CLI finds it.

Evidence: `projectRegistry.js` of `@google/gemini-cli-core` 0.61.0. The registry is asked first and believed only if no
marker says otherwise; then the markers; then a name is made. What the CLI would add to the registry, it adds itself.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any

from retold.agents.gemini.places import marked_root
from retold.agents.protocol import AgentHome
from retold.model.problem import Problem
from retold.reading.disk import FileBytes, list_folder, read_bytes
from retold.reading.json_decode import Decoded, decode

MARKER = ".project_root"
_VALID = re.compile(r"[a-z0-9-]+")


def hash_of(root: str) -> str:
    """Return the hash by which the CLI knows a project."""
    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()


def slug_of(home: AgentHome, root: str) -> str:
    """Return the name of a project's folder: the one it has, or the one that the CLI would give it."""
    known, registry = _normal(root), _registry(home)
    registered = registry.get(known)
    if registered is not None and not _is_anothers(home, registered, known):
        return registered
    marked = next((name for name in _folders(home) if known in _owners(home, name)), None)
    if marked is not None:
        return marked
    taken = {name for path, name in registry.items() if path != known}
    base = slugified(os.path.basename(root) or "project")
    names = chain((base,), (f"{base}-{number}" for number in count(1)))
    return next(name for name in names if name not in taken and not _is_anothers(home, name, known))


def _normal(root: str) -> str:
    """Return a root as the CLI compares it: on Windows in small letters."""
    return root.lower() if os.name == "nt" else root


def slugified(name: str) -> str:
    """Return a name as the CLI makes it: small letters, digits, and single hyphens between them."""
    hyphened = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]", "-", name.lower()))
    return re.sub(r"^-|-$", "", hyphened) or "project"


def _registry(home: AgentHome) -> Mapping[str, str]:
    """Return the registry; an empty one where the CLI would start again from nothing."""
    file = read_bytes(home.path / "projects.json", home.disk)
    decoded = decode(file.data) if isinstance(file, FileBytes) else None
    value: Any = decoded.value if isinstance(decoded, Decoded) and decoded.strict else None
    projects = value.get("projects") if type(value) is dict else None
    if type(projects) is not dict or not all(
        type(name) is str and _VALID.fullmatch(name) for name in projects.values()
    ):
        return {}
    return projects


def _folders(home: AgentHome) -> Iterator[str]:
    for base in (home.sessions, home.path / "history"):
        for entry in list_folder(base, home.disk):
            if not isinstance(entry, Problem) and entry.is_dir(follow_symlinks=False):
                yield entry.name


def _owners(home: AgentHome, name: str) -> set[str]:
    """Return the roots that markers in folders of this name tell."""
    bases = (home.sessions, home.path / "history")
    found = (marked_root(str(base / name), home.disk) for base in bases)
    return {_normal(root) for root in found if root is not None}


def _is_anothers(home: AgentHome, name: str, root: str) -> bool:
    return bool(_owners(home, name) - {root})
