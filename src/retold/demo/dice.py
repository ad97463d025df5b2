"""Chance that falls the same way each time: ids and figures that follow from words."""

import random
import string
from datetime import datetime

_ALPHABET = string.ascii_letters + string.digits


class Dice:
    """Throws that are the same for the same words."""

    def __init__(self, *words: str) -> None:
        self._random = random.Random("/".join(words))  # noqa: S311 - nothing here is a secret

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high."""
        return self._random.randint(low, high)

    def hex(self, digits: int) -> str:
        """Return a text of hexadecimal digits."""
        return f"{self._random.getrandbits(digits * 4):0{digits}x}"

    def name(self, length: int) -> str:
        """Return a text of letters and digits."""
        return "".join(self._random.choices(_ALPHABET, k=length))

    def uuid(self) -> str:
        """Return a UUID of version 4."""
        digits = self.hex(32)
        variant = "89ab"[self._random.getrandbits(2)]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def uuid7(self, at: datetime) -> str:
        """Return a UUID of version 7: it begins with the time."""
        time, rest = f"{int(at.timestamp() * 1000):012x}", self.uuid()
        return f"{time[:8]}-{time[8:]}-7{rest[15:]}"
