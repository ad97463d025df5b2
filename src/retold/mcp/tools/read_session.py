"""`read_session`: a conversation from its beginning to its end, or some turns of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from retold.archive.turns import turn_places
from retold.export.quoting import Quoting
from retold.export.transcript import Wanted, about, entry_lines, fate_of, plural, speaker
from retold.mcp import tool
from retold.mcp.citing import moment
from retold.mcp.cursor import Refused
from retold.mcp.meaning import session_meant
from retold.mcp.passage import Passage
from retold.mcp.tool import Asking, Tool
from retold.model.entries import Entry, Message
from retold.model.parts import ToolCall
from retold.model.session import Session

_MOST_CHILDREN = 20
"""Subagents that are told of at the top; each is told of where it was called as well."""


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


def _answer(asking: Asking, arguments: Arguments) -> Iterator[Passage]:
    card = session_meant(asking, arguments.session)
    begins = turn_places(asking.record, card.session)
    if arguments.turn > len(begins):
        raise Refused(f"the session has {plural(len(begins), 'turn')}: there is no turn {arguments.turn}")
    quoting = Quoting(asking.record, card.key, asking.redactors)
    if asking.first == 0:
        yield from top(quoting, len(begins))
    last = arguments.turn - 1 + arguments.turns
    end = begins[last] if arguments.turns and last < len(begins) else None
    wanted = Wanted(tools=arguments.tools, thoughts=arguments.thoughts)
    first = begins[arguments.turn - 1] + max(asking.first - 1, 0)
    yield from told(quoting, begins, wanted, first, end)


def top(quoting: Quoting, turns: int) -> Iterator[Passage]:
    """Yield what is known of a conversation before any of it is read."""
    session = quoting.session
    if session is not None:
        title, *facts = [line.text for line in about(session)]
        lines = [f"{title}", *facts, *_further(session, turns)]
        yield Passage(f"session {session.key}", "\n".join(lines), is_clean=True)


def _further(session: Session, turns: int) -> Iterator[str]:
    ended = f" · ended {moment(session.ended_at)}" if session.ended_at else ""
    yield f"{session.agent} · {plural(turns, 'turn')} · {session.status}{ended}"
    if session.parent:
        yield f"part of {session.parent}"
    shown, left = session.children[:_MOST_CHILDREN], len(session.children) - _MOST_CHILDREN
    if shown:
        yield "subagents: " + ", ".join(shown) + (f" and {left} more" if left > 0 else "")


def told(
    quoting: Quoting, begins: Sequence[int], wanted: Wanted, first: int, end: int | None
) -> Iterator[Passage]:
    """Yield a passage for every entry of which something is told; those before it that tell nothing go with it."""
    session = quoting.session
    if session is None:
        return
    skipped = 0
    for seq, entry in quoting.entries(first, end):
        lines = [line.text for line in entry_lines(entry, wanted)]
        lines += [f"  → subagent {key}" for key in _children(entry)]
        if not lines:
            skipped += 1
            continue
        head = f"turn {max(bisect_right(begins, seq), 1)} · {_who(entry, session.agent)}"
        yield Passage(head, "\n".join(lines), is_clean=True, numbers=skipped + 1)
        skipped = 0


def _children(entry: Entry) -> Iterator[str]:
    parts = entry.parts if isinstance(entry, Message) else ()
    return (part.child for part in parts if isinstance(part, ToolCall) and part.child)


def _who(entry: Entry, agent: str) -> str:
    name = speaker(entry, agent) if isinstance(entry, Message) else entry.kind
    became = fate_of(entry)
    at = moment(entry.at)
    return f"{name}{f' ({became})' if became else ''}{f' · {at}' if at else ''}"


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
