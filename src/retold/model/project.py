"""Where a conversation took place, and how we know."""

import hashlib
from typing import Literal

import msgspec

Evidence = Literal["recorded", "registry", "hash", "guessed", "none"]


class Project(msgspec.Struct, frozen=True, gc=False):
    """A project's root, with the evidence for it; never a bare guess."""

    root: str | None
    native_key: str | None
    """The agent's own name for the project: a folder's name in its home."""
    hash: str | None
    evidence: Evidence


class Clue(msgspec.Struct, frozen=True, gc=False):
    """A word about where a project lies: under the agent's own name for it, or under none."""

    root: str
    evidence: Evidence
    native_key: str | None = None


def root_hash(root: str) -> str:
    """Return the hash under which a project's root is known: of the text, exactly as it stands."""
    return hashlib.sha256(root.encode(errors="replace")).hexdigest()
