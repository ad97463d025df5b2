"""`file_history`: the sessions that changed a file, with their edits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, session_conditions


class Arguments(Filtered, frozen=True, kw_only=True):
    """The file and the filters."""

    path: Annotated[
        str,
        msgspec.Meta(
            description="the file: its whole path, its place in the project, or the end of it (main.py)",
            min_length=1,
            max_length=1000,
        ),
    ]


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.mcp.passages import file_passages

    return file_passages(context, arguments.path, session_conditions(context, arguments))


FILE_HISTORY = Tool(
    name="file_history",
    title="What was done to a file",
    about="Which past conversations changed a file, the newest first, with the edits themselves as diffs, the turn and the"
    " tool of each. Ask it before you change a file whose past you do not know, or to find out why a line is as it is:"
    " read_session with the key and the turn tells what led to an edit.",
    arguments=Arguments,
    answer=_answer,
    empty_text="No conversation within reach changed such a file. Give the end of its path only, or look for its name with"
    " search_history.",
)
