"""How often something may be asked for: a store that empties with each time and fills by itself."""

import time
from collections.abc import Callable


class Allowance:
    """So many at once, and so many a second in the long run."""

    def __init__(self, at_once: float, a_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._full, self._a_second, self._now = at_once, a_second, now
        self._left, self._at = at_once, now()

    def take(self) -> bool:
        """Take one; tell whether there was one."""
        now = self._now()
        self._left = min(self._full, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
