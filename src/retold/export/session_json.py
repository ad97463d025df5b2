"""Sessions in the JSON form of the model, one object per line."""

from collections.abc import Iterable, Iterator

from retold.export.telling import ExportOptions, ExportSession
from retold.model.serialization import session_pieces


def json_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield each session, and after it its subagents."""
    for telling in tellings:
        yield from session_pieces(telling.session)
        yield b"\n"
        yield from json_pieces(telling.subagents.values(), choice)
