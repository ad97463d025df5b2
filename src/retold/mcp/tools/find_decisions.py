"""`find_decisions`: decisions about a subject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from retold.mcp.passages import format_places, turn_label
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, session_conditions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from retold.insights.past_answers import PastAnswer
    from retold.search.pages import SessionSummary


class Arguments(Filtered, frozen=True, kw_only=True):
    """The subject and the filters."""

    about: Annotated[
        str,
        msgspec.Meta(description="a subject or a question in plain words", min_length=1, max_length=2_000),
    ]


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.insights.past_answers import PastQuestion, find_decisions
    from retold.mcp.passages import answer_passages

    question = PastQuestion(arguments.about, session_conditions(context, arguments), context.redact)
    return answer_passages(context, find_decisions(context.store, question, context.first_passage), _lines)


def _lines(context: ToolContext, found: PastAnswer, card: SessionSummary) -> Iterator[str]:
    """Yield the decisions; if there are none, the places where the subject is mentioned."""
    for one in found.decisions:
        yield f"{turn_label(one.place)}, decided by {one.by} ({one.source}): {one.text}"
    if not found.decisions:
        yield from (f"spoken of, {line}" for line in format_places(context, card.key, found.result))


FIND_DECISIONS = Tool(
    name="find_decisions",
    title="What did we decide?",
    about="Find out what was decided about something in past conversations: sentences in which a person or an agent"
    " chose, agreed or ruled something out, and plans that were approved. Where nothing was decided in so many words, it is"
    " told where the subject was spoken of. A later decision may have replaced an earlier one: look at the dates.",
    arguments=Arguments,
    answer=_answer,
    empty_text="Nothing was said about it in past conversations.",
)
