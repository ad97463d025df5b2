"""Sessions that were just read whole, for whoever asks for their next part."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from retold.model.session import Session


class SessionCache:
    """A few sessions, those that were asked for last; bounded by the bytes of the files that they were read from."""

    def __init__(self, most: int) -> None:
        self._most, self._filled, self._lock = most, 0, Lock()
        self._sessions: OrderedDict[Hashable, tuple[int, Session]] = OrderedDict()

    def session(self, key: Hashable, read: Callable[[], Session]) -> Session:
        """Return a session by all that it depends on; it is read if it is not held."""
        with self._lock:
            if key in self._sessions:
                self._sessions.move_to_end(key)
                return self._sessions[key][1]
        found = read()  # others may read meanwhile, and even the same
        size = sum(source.bytes for source in found.sources)
        if size <= self._most:
            self._hold(key, size, found)
        return found

    def _hold(self, key: Hashable, size: int, session: Session) -> None:
        with self._lock:
            self._filled += size - self._sessions.pop(key, (0, session))[0]
            self._sessions[key] = (size, session)
            while self._filled > self._most:
                self._filled -= self._sessions.popitem(last=False)[1][0]
