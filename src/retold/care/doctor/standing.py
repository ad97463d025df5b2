"""How things stand, whatever was found: how much of each home is archived, and the room that the archive has."""

import os
import shutil
from collections.abc import Iterator

import msgspec

from retold.archive.queries.lookups import own_files
from retold.care.doctor.survey import Survey


class Standing(msgspec.Struct, frozen=True):
    """A home, and how much of it the archive has."""

    agent: str
    home: str
    files: int
    known: int
    """Those that a sync has met as they are now."""
    is_own: bool
    is_kept: bool


class Room(msgspec.Struct, frozen=True):
    """Bytes that the archive takes, and that are left for it."""

    size: int
    free: int


def standings(survey: Survey) -> Iterator[Standing]:
    """Yield how each home stands that is there."""
    for place in survey.places:
        known = sum(survey.is_known(path, answer) for path, answer in place.files.items())
        if place.files or place.home.path.is_dir():
            yield Standing(
                place.agent.NAME, place.shown, len(place.files), known, place.is_own, place.is_kept
            )


def room(folder: str) -> Room:
    """Return the room that the archive takes and has."""
    size = sum(os.path.getsize(path) for path in own_files(folder))
    return Room(size, shutil.disk_usage(folder).free)
