"""The tokens of a response, which every line of it repeats: counted once, where they tell most."""

import msgspec

from retold.agents.claude.raw import AnswerLine, UsageRecord
from retold.agents.claude.state import State
from retold.model.session import Message
from retold.model.usage import Usage

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code made up itself."""


def counted(line: AnswerLine, state: State) -> Usage | None:
    """Return the tokens of a response, if no line of it has told more output; the one that told less gives them up.

    Output grows while a response is streamed, everything else stays: the largest is the last that was written.
    """
    record = line.message.usage
    if record is None or line.message.model == SYNTHETIC or line.is_api_error_message:
        return None
    request = request_of(line)
    known = state.responses.get(request)
    if known is not None:
        place, output, _ = known
        if output > (record.output_tokens or 0):
            return None
        bearer = state.nodes[place].entry
        if isinstance(bearer, Message):
            state.put(place, msgspec.structs.replace(bearer, usage=None))
    return usage(record, request)


def request_of(line: AnswerLine) -> str:
    """Return what all lines of one response share, in every file that holds it: copies by 1.0 lack the `requestId`."""
    return line.message.id or line.request_id or f"{line.session_id}/{line.uuid}"


def usage(record: UsageRecord, request: str) -> Usage:
    """Return what is recorded: the counts do not overlap, and `output_tokens` has the thinking in it."""
    read, written = record.cache_read_input_tokens, record.cache_creation_input_tokens
    given = _sum(record.input_tokens, read, written)
    output, thought = record.output_tokens, _thought(record)
    split = record.cache_creation
    return Usage(
        request,
        given,
        read,
        written,
        output if output is None or thought is None else output - thought,
        thought,
        None,
        _sum(given, output),
        False,  # noqa: FBT003 - by position: as often as there are lines
        None if split is None else split.ephemeral_1h_input_tokens,
    )


def _sum(*counts: int | None) -> int | None:
    """Return the sum of what is recorded; nothing, if nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _thought(record: UsageRecord) -> int | None:
    """Return how much of the output was thinking, which newer versions tell."""
    match record.output_tokens_details:
        case {"thinking_tokens": int(count)} if 0 <= count <= (record.output_tokens or 0):
            return count
        case _:
            return None
