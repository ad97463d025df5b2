"""Where in the originals a text stands: so that it can be shown again without being kept twice.

A region is a range of bytes that holds a text as JSON writes it. What stands nowhere in this form is kept on pages.
"""

from collections.abc import Iterator, Sequence

import msgspec

from retold.archive.documents import SpokenText
from retold.archive.originals import packed

LARGEST = 64 << 20
"""Originals larger than this are not looked through; what they say is kept on pages."""
PAGE = 1 << 20
_FIRST = 96
_NEAR, _FAR = 1 << 14, 1 << 17
_LONG = 48
"""Shorter texts stand in many places: to have found one does not tell how far we are."""
_TRIES = 8
_PASSES = 12
"""How many times the size of all originals may be looked through for texts that are not where they should be."""
_LOOK = 64
"""Bytes that a look into another original costs besides those that are looked through."""


class _Strip:
    """An original, and how far along it we are: with the message, and with the text in it."""

    __slots__ = ("along", "aside", "data", "end", "here", "number")

    def __init__(self, number: int, data: bytes) -> None:
        self.number, self.data = number, data
        self.along = self.here = self.end = 0
        self.aside = len(data)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield where to look: next, near, and at last anywhere."""
        near, size = min(self.here + _NEAR, len(self.data)), len(self.data)
        yield self.here, near
        yield self.along, self.here
        yield near, size
        yield 0, self.along

    def pass_by(self, start: int, end: int) -> None:
        """Go on behind what was found: far off only after a second find there, since the same may be said twice."""
        if not self.along <= start <= self.here + _FAR and not self.aside <= start <= self.aside + _FAR:
            self.aside = end
            return
        self.here, self.end = end, max(self.end, end)

    def move(self) -> None:
        """Go on with the next message."""
        self.along = self.here = self.end


class TextLocator:
    """Finds texts in the originals of one session, going along with them."""

    def __init__(self, originals: Sequence[tuple[int, bytes]]) -> None:
        """Take the originals by their ids."""
        self._strips = [_Strip(number, data) for number, data in originals if len(data) <= LARGEST]
        self._budget = _PASSES * sum(len(strip.data) for strip in self._strips) + PAGE
        self._passed: list[_Strip] = []
        """Those in which a text of this message was found."""
        self._page = bytearray()
        self._packed: list[bytes] = []

    def regions(self, spoken: SpokenText) -> list[str]:
        """Return where the texts of each document of a message stand, one behind the other."""
        found: list[list[str]] = [[] for _ in spoken.docs]
        for number, text in spoken.texts:
            found[number].append(self._region(text))
        for strip in self._passed:
            strip.move()
        self._passed.clear()
        return [" ".join(regions) for regions in found]

    def pages(self) -> list[bytes]:
        """Return what stands in no original, on pages that are packed."""
        return [*self._packed, packed(bytes(self._page))] if self._page else self._packed

    def _region(self, text: str) -> str:
        raw = escaped(text)
        for place, strip in enumerate(self._strips):
            if place and self._budget < 0:  # many versions of a file may lack a text
                break
            found = self._next(raw, strip)
            if found < 0:
                found = self._find(raw, strip)
            if found >= 0:
                if len(raw) >= _LONG:
                    strip.pass_by(found, found + len(raw))
                    self._passed.append(strip)
                return f"{strip.number:x}.{found:x}.{len(raw):x}"
        return self._on_page(raw)

    def _next(self, raw: bytes, strip: _Strip) -> int:
        """Return where a short text stands if it comes next, as nearly always; else -1."""
        if len(raw) > _FIRST:
            return -1
        found = strip.data.find(raw, strip.here, strip.here + _NEAR + len(raw))
        if strip is not self._strips[0]:
            self._budget -= _LOOK + (min(_NEAR, len(strip.data)) if found < 0 else found - strip.here)
        return found

    def _find(self, raw: bytes, strip: _Strip) -> int:
        """Return where a text stands; -1 where it stands nowhere, or where to look for it would take too long."""
        first, data = raw[:_FIRST], strip.data
        for start, end in strip.windows():
            found = start
            for _ in range(_TRIES):
                if self._budget < 0:
                    return -1
                place = data.find(first, found, end + len(first))
                self._budget -= (end if place < 0 else place) - found
                if place < 0:
                    break
                if data.startswith(raw, place):
                    return place
                found = place + 1
        return -1

    def _on_page(self, raw: bytes) -> str:
        if self._page and len(self._page) + len(raw) > PAGE:
            self._packed.append(packed(bytes(self._page)))
            self._page.clear()
        start = len(self._page)
        self._page.extend(raw)
        self._page.extend(b"\n")  # no text of a search runs over from one to the next
        return f"-{len(self._packed):x}.{start:x}.{len(raw):x}"


def escaped(text: str) -> bytes:
    """Return a text as it stands between the quotes of JSON."""
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:  # half a surrogate pair
        return msgspec.json.encode(text.encode("utf-8", "replace").decode())[1:-1]
