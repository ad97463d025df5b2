"""What is known of a conversation whose requests were counted, and that was not read."""

from datetime import datetime

import msgspec

from retold.model.project import Project
from retold.model.request import Request
from retold.model.session import Kind


class Metered(msgspec.Struct, frozen=True):
    """What a conversation took, and as much about it as is told without reading what was said."""

    group: str
    """What all readings of the conversation would share."""
    native_id: str | None
    key: str
    kind: Kind
    parent: str | None
    project: Project
    started_at: datetime
    ended_at: datetime
    paths: tuple[str, ...]
    """Of its files, in the order of a session's `sources`."""
    requests: list[Request]


class Unsure(Exception):  # noqa: N818 - no error: a file to be read as a whole
    """Something in a file bears on a count, and it is not plain how."""
