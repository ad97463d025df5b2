"""Sessions as normalised events, one JSON object per line."""

from collections.abc import Iterable, Iterator

from retold.export.telling import ExportOptions, ExportSession
from retold.model.events import steps
from retold.model.serialization import step_json


def event_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the events of each session, with what was said, and after them those of its subagents."""
    for telling in tellings:
        for step in steps(telling.session, with_text=True, with_thoughts=choice.thoughts):
            yield step_json(step) + b"\n"
        yield from event_pieces(telling.subagents.values(), choice)
