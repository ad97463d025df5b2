"""What the versions of Gemini CLI differ in when a session is written for them. Evidence: `docs/formats/gemini.md`."""

import re

import msgspec

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class Release(msgspec.Struct, frozen=True, order=True):
    """A version of the CLI."""

    major: int
    minor: int
    patch: int = 0

    @property
    def has_lines(self) -> bool:
        """Whether sessions are JSON lines, not one JSON document."""
        return self >= Release(0, 39)

    @property
    def has_slugs(self) -> bool:
        """Whether a project's folder has a name, not its hash."""
        return self >= Release(0, 29)


NEWEST = Release(0, 61)


def release(text: str) -> Release | None:
    """Return the version that a text names."""
    match = _NUMBERS.match(text.strip().removeprefix("v"))
    return None if match is None else Release(*(int(number or 0) for number in match.groups()))
