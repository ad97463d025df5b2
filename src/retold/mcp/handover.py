"""What prompts are about: one conversation, as somebody has to know it who goes on with it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import msgspec

from retold.mcp import tool
from retold.mcp.meaning import resolve_session
from retold.mcp.passage import Passage
from retold.mcp.tool import Tool, ToolContext


class Arguments(tool.Arguments, frozen=True, kw_only=True):
    """Which conversation."""

    session: Annotated[
        str,
        msgspec.Meta(
            description="the session's key, its native id, or the start of either",
            min_length=1,
            max_length=400,
        ),
    ]


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.mcp.going_on import summed_up

    return islice(summed_up(asking, resolve_session(asking, arguments.session)), asking.first, None)


HANDOVER = Tool(
    name="handover",
    title="What to know of a conversation",
    about="For prompts: agents read with read_session.",
    arguments=Arguments,
    answer=_answer,
    nothing="There is nothing in it.",
)
