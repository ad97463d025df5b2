"""A session as Gemini CLI's `/chat share x.json` writes it."""

import json
from collections.abc import Iterable, Iterator

from retold.export.share import turns
from retold.export.telling import ExportOptions, ExportSession
from retold.model.serialization import room_for_depth


def share_json_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:  # noqa: ARG001 - it has one look
    """Yield each session as one document, as `JSON.stringify(history, null, 2)` does."""
    for telling in tellings:
        before = "[\n"
        for turn in turns(telling.session):
            with room_for_depth():
                text = json.dumps(turn, ensure_ascii=False, indent=2)
            yield (before + "  " + text.replace("\n", "\n  ")).encode(errors="replace")
            before = ",\n"
        yield b"[]" if before == "[\n" else b"\n]"
