"""What a dataset says of itself: which parts there are, and what is in each, by marks alone."""

from collections.abc import Mapping

import msgspec

from retold.model.tables import UNKNOWN, VERSION

NAME = "retold.json"
FORMAT = "retold-dataset"


class Part(msgspec.Struct, frozen=True):
    """A part of the sessions of one agent and month: a file for each table that has rows of it."""

    agent: str
    month: str = UNKNOWN
    number: int = 0
    marks: Mapping[str, str] = {}
    """What is in it, by name; no mark while it is written."""
    files: Mapping[str, int] = {}
    """The bytes of its files, by table."""

    @property
    def place(self) -> tuple[str, str, int]:
        """Where it lies."""
        return self.agent, self.month, self.number


class Manifest(msgspec.Struct, frozen=True):
    """All parts, and how they were written."""

    is_redacted: bool
    seal: str
    """Of all that rows of any session depend on: the version, the options, the secrets that were known."""
    parts: tuple[Part, ...] = ()
    names: str = ""
    """Of the key by which sessions are named: those that another has named cannot be compared."""
    is_complete: bool = False
    """False while parts are written, and where somebody was stopped at that."""
    format: str = FORMAT
    version: int = VERSION
    """Of the tables."""


class NotOurs(Exception):  # noqa: N818 - it says what happened
    """The folder is not one that we may write a dataset to."""


def encoded(manifest: Manifest) -> bytes:
    """Return a manifest as it is written."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decoded(data: bytes, path: str) -> Manifest:
    """Return what was written; raises NotOurs."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotOurs(f"{path}: no manifest of a dataset ({error})") from error
    if manifest.format != FORMAT:
        raise NotOurs(f"{path}: no manifest of a dataset")
    return manifest
