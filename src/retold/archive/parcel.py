"""What a worker sends to the one writer: files to keep, and the sessions that were read from them."""

import msgspec

from retold.archive.originals import Chunk
from retold.archive.rows import SessionRows
from retold.model.problem import Problem, problem
from retold.model.serialization import problem_json
from retold.reading.disk import printable


class NewContent(msgspec.Struct):
    """An original that is new, or has grown."""

    name: int
    size: int
    modified_ns: int
    seal: bytes
    chunks: list[Chunk]
    start: int = 0
    """The place of the first of the chunks: behind those that stay as they are."""


class FileState(msgspec.Struct):
    """A file, as it was when it was read."""

    path: str
    home: str
    folder: str
    label: str | None
    cluster: str | None
    is_beside: bool
    size: int
    modified_ns: int
    tail: bytes
    identity: str
    read_ns: int
    refusal: str | None = None
    fresh: NewContent | None = None
    """None where its content is known."""
    dropped: tuple[int, ...] = ()
    """The names of earlier originals of which this one says all."""


class ClusterUpdate(msgspec.Struct):
    """A cluster's files and sessions, or a file of many conversations and what only it tells of."""

    agent: str
    cluster: str | None
    files: list[FileState]
    sessions: list[SessionRows]
    scraps: dict[int, bytes] = {}
    """For files of many conversations: what they say of each, as a digest."""
    former: dict[int, int] = {}
    """Names of rows that list a conversation a second time, each with the name of that conversation."""
    roots: dict[str, str] = {}
    """Roots of projects that were found on the way."""
    left: list[int] = []
    """Names of conversations that are not archived further; archived parts stay."""
    forgotten: list[str] = []
    """The files of conversations that are forgotten, and the roots of their projects: they are kept as hashes alone."""
    problems: list[Problem] = []
    """Why files that were found could not be opened or read."""
    failures: dict[str, str] = {}
    """Problems in their JSON form, by the path of the file that could not be read because of a bug or of damage.

    Where there is one, sessions of the cluster that are not in the parcel stay as they are.
    """
    unwritten: list[str] = []
    """The files of sessions that cannot be written: they are kept even where their paths are hidden."""


def without_sessions(parcel: ClusterUpdate, error: Exception) -> ClusterUpdate:
    """Return the files of a parcel whose sessions cannot be written because of an error, with a problem for each."""
    own = [held.path for held in parcel.files if not held.is_beside]
    unwritten = list(dict.fromkeys(path for rows in parcel.sessions for path in rows.sources))
    paths = [path for path in own if path in unwritten] or unwritten or own
    told = [problem("reader-failed", f"{type(error).__name__}: {error}", printable(path)) for path in paths]
    failures = {path: problem_json(one).decode() for path, one in zip(paths, told, strict=True)}
    return ClusterUpdate(
        parcel.agent,
        parcel.cluster,
        parcel.files,
        [],
        left=parcel.left,
        forgotten=parcel.forgotten,
        problems=[*parcel.problems, *told],
        failures={**failures, **parcel.failures},
        unwritten=unwritten,
    )
