"""`read_session`: a conversation from its beginning to its end, or some turns of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from retold.mcp import tool
from retold.mcp.passages import resolve_session
from retold.mcp.reply import BadCursor, Passage
from retold.mcp.tool import Tool, ToolContext
from retold.sessions.pages import turn_places


class Arguments(tool.Arguments, frozen=True, kw_only=True):
    """Which conversation, and what of it."""

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


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.export.load import Quoting
    from retold.export.transcript import TranscriptOptions, plural
    from retold.mcp.passages import told, top

    card = resolve_session(asking, arguments.session)
    begins = turn_places(asking.record, card.session, card.key)
    if arguments.turn > len(begins):
        raise BadCursor(f"the session has {plural(len(begins), 'turn')}: there is no turn {arguments.turn}")
    quoting = Quoting(asking.record, card.key, asking.redactors)
    if asking.first == 0:
        yield from top(asking, quoting, len(begins))
    last = arguments.turn - 1 + arguments.turns
    end = begins[last] if arguments.turns and last < len(begins) else None
    wanted = TranscriptOptions(tools=arguments.tools, thoughts=arguments.thoughts)
    first = begins[arguments.turn - 1] + max(asking.first - 1, 0)
    yield from told(asking, quoting, begins, wanted, first, end)


READ_SESSION = Tool(
    name="read_session",
    title="Read a past conversation",
    about="Read one past conversation, whole or some turns of it: what the person asked, what the agent answered and which"
    " tools it used. Give the session key that another tool cited, and its turn to see what led to a hit and what"
    " came of it. Messages that were taken back are marked (rewound); a subagent has a key of its own.",
    arguments=Arguments,
    answer=_answer,
    nothing="There is nothing more to read.",
)
