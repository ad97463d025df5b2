"""How long a call ran: from when it was asked for to when it was recorded.

No version records a duration. Up to 0.61 a call's `timestamp` is the time at which all calls of a response were done. When
they were asked for stands in their ids (`read_file-1770000000000-1f4e`), unless the API gave them; else the message tells,
which is recorded as the response ends. Up to 0.31 some messages are recorded as late as their calls, and tell nothing.
"""

import re
from datetime import UTC, datetime, timedelta

from retold.reading.times import duration_ms

_ASKED = re.compile(r"[-_](\d{13})[-_][0-9a-z]+\Z")
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)
_AT_ONCE = 1
"""Two times that one step of the CLI writes down are this far apart at most."""


def took_ms(call_id: str, said_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return the milliseconds from when a call was asked for to when all that were asked for with it were done."""
    if done_at is None:
        return None
    asked = _ASKED.search(call_id)
    if asked is not None:
        return duration_ms((done_at - _EPOCH) // _MILLISECOND - int(asked[1]))
    if said_at is None:
        return None
    since = duration_ms((done_at - said_at) // _MILLISECOND)
    return None if since is None or since <= _AT_ONCE else since
