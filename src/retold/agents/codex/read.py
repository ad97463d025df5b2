"""A file to readings: its form found, its lines folded."""

from collections.abc import Sequence
from contextlib import closing

from retold.agents.codex.documents import read_document
from retold.agents.codex.lists import read_list
from retold.agents.codex.places import PACKED
from retold.agents.codex.rollouts import Rollout, read_lines, read_packed
from retold.agents.codex.shape import form_of
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.reading.disk import modified_at, open_file
from retold.reading.jsonl import START, open_lines


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a file; given what an earlier call returned, only what was appended since."""
    if source.path.name.endswith(PACKED):
        return _packed(source)
    form = form_of(source.path, source.disk)
    match form:
        case Problem():
            return form
        case "document":
            return read_document(source)
        case "history" | "index":
            return read_list(source, form)
    known = _known(earlier)
    file = open_lines(source.path, known.mark if known else START, source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        found = read_lines(source, file, known)
        name = "codex-jsonl" if form == "lines" else "codex-items"
        return (Reading(source, name, found.thread, file.size, file.modified_at, found, ()),)


def _known(earlier: Sequence[Reading]) -> Rollout | None:
    """Return what was read before, if it can be gone on with."""
    if len(earlier) != 1 or not isinstance(earlier[0].state, Rollout):
        return None
    known: Rollout = earlier[0].state
    return known if known.mark != START else None


def _packed(source: Source) -> Sequence[Reading] | Problem:
    file = open_file(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    with closing(file):
        found = read_packed(source, file)
    if not found.state.meta:
        return problem("not-a-session", "compressed, but no conversation of Codex", source.shown)
    at = modified_at(file.modified_ns)
    return (Reading(source, "codex-jsonl-zst", found.thread, file.size, at, found, ()),)
