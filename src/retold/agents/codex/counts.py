"""What is counted of a line, as Codex writes it: all else is passed over without being made a value.

Anything that is not of these shapes is read as a whole.
"""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, UnsetType

from retold.agents.codex.raw import Record
from retold.agents.codex.state import Figures

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What an archive stores as it stands; growth of such counts, too."""


class SpentRecord(msgspec.Struct, gc=False):
    """Tokens, as Codex counts."""

    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    reasoning_output_tokens: Count
    total_tokens: Count
    cache_write_input_tokens: Count = 0

    def figures(self) -> Figures:
        """Return them in their order."""
        return (
            self.input_tokens,
            self.cached_input_tokens,
            self.cache_write_input_tokens,
            self.output_tokens,
            self.reasoning_output_tokens,
            self.total_tokens,
        )


class InfoRecord(msgspec.Struct, gc=False):
    """The running total, and what the last response took."""

    total_token_usage: SpentRecord
    last_token_usage: SpentRecord


class PayloadRecord(msgspec.Struct, gc=False):
    """What is counted of a payload; what differs from kind to kind is looked at when the kind is known."""

    type: str | None = None
    role: str | None = None
    content: Raw | UnsetType = UNSET
    message: Raw | UnsetType = UNSET
    info: InfoRecord | UnsetType | None = UNSET
    model: Raw | UnsetType = UNSET
    item: Raw | UnsetType = UNSET


class LineRecord(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A line as all are since 0.33."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    type: str
    payload: PayloadRecord
    ordinal: int | None = None
    metadata: Raw = Raw(b"null")


class WholeRecord(msgspec.Struct, gc=False):
    """The whole payload of a line."""

    payload: Record


class SpentPayload(msgspec.Struct, gc=False):
    """What a response took, by its id."""

    usage: SpentRecord
    response_id: str


class SpentLine(msgspec.Struct, gc=False):
    """A line that tells what a response took (0.166)."""

    payload: SpentPayload


class TextRecord(msgspec.Struct, gc=False):
    """A piece of what was said."""

    text: str
    type: str


class ItemRecord(msgspec.Struct, gc=False):
    """A completed item."""

    type: str
    content: Raw | UnsetType = UNSET


_Texts = Annotated[list[TextRecord], msgspec.Meta(min_length=1, max_length=1)]
decode = msgspec.json.Decoder(LineRecord).decode
decode_whole = msgspec.json.Decoder(WholeRecord).decode
decode_spent = msgspec.json.Decoder(SpentLine).decode
decode_texts = msgspec.json.Decoder(_Texts).decode
decode_text = msgspec.json.Decoder(str).decode
decode_name = msgspec.json.Decoder(str | None).decode
decode_item = msgspec.json.Decoder(ItemRecord).decode
