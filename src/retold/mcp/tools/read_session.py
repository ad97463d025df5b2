"""`read_session`: the transcript of a session, whole or some turns of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from retold.mcp import tool
from retold.mcp.passages import resolve_session
from retold.mcp.reply import Passage, RequestError
from retold.mcp.tool import Tool, ToolContext
from retold.sessions.slices import turn_starts


class Arguments(tool.ToolArguments, frozen=True, kw_only=True):
    """The session, the turns, and what to show of them."""

    session: Annotated[
        str,
        msgspec.Meta(
            description="the session's key, as other tools cite it; also its native id, or the start of either",
            min_length=1,
            max_length=400,
        ),
    ]
    turn: Annotated[
        int, msgspec.Meta(description="the turn to begin with; each begins with a prompt", ge=1, le=10**9)
    ] = 1
    turns: Annotated[
        int, msgspec.Meta(description="how many turns; 0 for all that follow", ge=0, le=10**9)
    ] = 0
    tools: Annotated[
        Literal["none", "names", "full"],
        msgspec.Meta(description="tool calls: not at all, a line each, or with arguments and results"),
    ] = "names"
    thoughts: Annotated[bool, msgspec.Meta(description="also what the model thought")] = False


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.export.redacted_session import RedactedSession
    from retold.export.text.formatting import plural
    from retold.export.transcript import TranscriptOptions
    from retold.mcp.passages import entry_passages, heading_passage

    card = resolve_session(context, arguments.session)
    begins = turn_starts(context.store, card.session, card.key)
    if arguments.turn > len(begins):
        raise RequestError(
            f"the session has {plural(len(begins), 'turn')}: there is no turn {arguments.turn}"
        )
    redacted = RedactedSession(context.store, card.key, context.make_redactor)
    if context.first_passage == 0:
        yield from heading_passage(context, redacted, len(begins))
    last = arguments.turn - 1 + arguments.turns
    end = begins[last] if arguments.turns and last < len(begins) else None
    options = TranscriptOptions(tools=arguments.tools, thoughts=arguments.thoughts)
    first = begins[arguments.turn - 1] + max(context.first_passage - 1, 0)
    yield from entry_passages(context, redacted, begins, options, first, end)


READ_SESSION = Tool(
    name="read_session",
    title="Read a past conversation",
    about="Read one past conversation, whole or some turns of it: what the person asked, what the agent answered and which"
    " tools it used. Give the session key that another tool cited, and its turn to see what led to a hit and what"
    " came of it. Messages that were taken back are marked (rewound); a subagent has a key of its own.",
    arguments=Arguments,
    answer=_answer,
    empty_text="There is nothing more to read.",
)
