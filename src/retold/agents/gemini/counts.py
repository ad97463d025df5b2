"""What is counted of a file, as the CLI writes it: all else is passed over without being made a value.

Anything that is not of these shapes is read as a whole.
"""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, UnsetType

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What an archive stores as it stands."""
_NOTHING = Raw(b"null")


class TokensRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    """The tokens of a response, all six."""

    input: Count
    output: Count
    cached: Count
    thoughts: Count
    tool: Count
    total: Count


class SaidRecord(msgspec.Struct, gc=False, rename="camel"):
    """What is counted of a message."""

    id: str
    type: str
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    tokens: TokensRecord | None = None
    model: str | None = None
    rewind_to: Raw | UnsetType = msgspec.field(name="$rewindTo", default=UNSET)


class SpokenRecord(SaidRecord, gc=False, rename="camel"):
    """The same, with whether it says anything."""

    content: Raw = _NOTHING
    tool_calls: Raw = _NOTHING
    thoughts: Raw = _NOTHING


class MetadataRecord(msgspec.Struct, gc=False, rename="camel"):
    """What a document, a line or a `$set` says about the session."""

    session_id: str | UnsetType = UNSET
    project_hash: str | UnsetType = UNSET
    start_time: str | UnsetType = UNSET
    last_updated: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    messages: list[SpokenRecord] | UnsetType = UNSET
    retold: Raw | UnsetType = UNSET


class LineRecord(MetadataRecord):
    """A line: of a message, about the session, or an operation. The CLI tells them apart in this order."""

    rewind_to: str | UnsetType = msgspec.field(name="$rewindTo", default=UNSET)
    id: str | UnsetType = UNSET
    set: MetadataRecord | UnsetType = msgspec.field(name="$set", default=UNSET)
    message: Raw | UnsetType = UNSET


decode_line = msgspec.json.Decoder(LineRecord).decode
decode_said = msgspec.json.Decoder(SaidRecord).decode
decode_spoken = msgspec.json.Decoder(SpokenRecord).decode
decode_document = msgspec.json.Decoder(MetadataRecord).decode
