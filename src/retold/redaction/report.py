"""What was taken out of an export, and where; never the thing itself."""

import msgspec


class RemovalPlace(msgspec.Struct, frozen=True):
    """Where something was."""

    session: str | None
    """The key of the session; none for a text that is in none."""
    entry: str | None
    """The id of the message or event, else its place in the timeline; none for what is said of the whole session."""
    field: str
    """The field, from the entry on."""


class Removal(msgspec.Struct, frozen=True):
    """Something that was taken out, as often as it was in one place."""

    kind: str
    placeholder: str
    """What stands there now."""
    count: int
    place: RemovalPlace
