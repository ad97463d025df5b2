"""How long a call ran: from when it was asked for to when it was recorded.

No version records a duration. Up to 0.61 a call's `timestamp` is the time at which all calls of a response were done. When
they were asked for stands in their ids (`read_file-1770000000000-1f4e`), unless the API gave them; else the message tells,
which is recorded as the response ends. Up to 0.31 some messages are recorded as late as their calls, and tell nothing.
"""

from datetime import UTC, datetime

from retold.reading.diagnostics import LONGEST_MS, milliseconds

_EPOCH = datetime.fromtimestamp(0, UTC)
_PIECES = 3  # the tool, the time, and what tells calls of one time apart
_DIGITS = 13
"""Of milliseconds since 1970, from 2001 to 2286."""
_AT_ONCE = 1
"""Two times that one step of the CLI writes down are this far apart at most."""


def took_ms(call_id: str, said_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return the milliseconds from when a call was asked for to when all that were asked for with it were done."""
    if done_at is None:
        return None
    pieces = call_id.rsplit("-", 2)
    if len(pieces) != _PIECES:
        pieces = call_id.rsplit("_", 2)
    if len(pieces) == _PIECES and len(pieces[1]) == _DIGITS and pieces[1].isdecimal():
        took, least = milliseconds(done_at - _EPOCH) - int(pieces[1]), 0
    elif said_at is not None:
        took, least = milliseconds(done_at - said_at), _AT_ONCE + 1
    else:
        return None
    return took if least <= took <= LONGEST_MS else None
