"""What is to be taken of another's archive, file by file, and what becomes of the conversations in it."""

from collections.abc import Sequence

import msgspec

from retold.ingest.foreign_disk import Version
from retold.ingest.offers import ImportOffer
from retold.model.problem import Problem


class Taking(msgspec.Struct, frozen=True):
    """A file, and what of it is to be taken."""

    agent: str
    offer: ImportOffer
    cluster: str | None
    is_beside: bool
    versions: Sequence[Version]


class Selection(msgspec.Struct):
    """What is to be taken of one agent, and what becomes of the conversations in it."""

    takings: list[Taking] = []
    new: set[int] = set()
    """The names of sessions that are not known here."""
    merged: set[int] = set()
    """Those of which there is more than is known here."""
    unchanged: set[int] = set()
    left: set[int] = set()
    """Those that are forgotten here, or of a project of which nothing is kept."""
    aliases: dict[int, int] = {}
    """Sessions that have another name here, because it is made of where their files lie."""
    problems: list[Problem] = []
