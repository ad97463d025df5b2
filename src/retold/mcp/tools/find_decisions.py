"""`find_decisions`: what was decided about something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from retold.mcp.passages import place_lines, turn_words
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, narrowed

TYPE_CHECKING = False  # what reads sessions is imported when it is asked for
if TYPE_CHECKING:
    from retold.insights.decisions import Decision
    from retold.insights.past_answers import PastAnswer
    from retold.search.pages import SessionSummary


class Arguments(Filtered, frozen=True, kw_only=True):
    """What it is about."""

    about: Annotated[
        str,
        msgspec.Meta(description="a subject or a question in plain words", min_length=1, max_length=2_000),
    ]


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.insights.past_answers import PastQuestion, decided
    from retold.mcp.passages import passages

    question = PastQuestion(arguments.about, narrowed(asking, arguments), asking.clean)
    return passages(asking, decided(asking.record, question, asking.first), _lines)


def _lines(asking: ToolContext, found: PastAnswer, card: SessionSummary) -> Iterator[str]:
    """Yield what was decided; where that was not said in so many words, where it was spoken of."""
    yield from map(_line, found.decisions)
    if not found.decisions:
        yield from (f"spoken of, {line}" for line in place_lines(asking, card.key, found.holding))


def _line(decision: Decision) -> str:
    return f"{turn_words(decision.place)}, decided by {decision.by} ({decision.source}): {decision.text}"


FIND_DECISIONS = Tool(
    name="find_decisions",
    title="What did we decide?",
    about="Find out what was decided about something in past conversations: sentences in which a person or an agent"
    " chose, agreed or ruled something out, and plans that were approved. Where nothing was decided in so many words, it is"
    " told where the subject was spoken of. A later decision may have replaced an earlier one: look at the dates.",
    arguments=Arguments,
    answer=_answer,
    nothing="Nothing was said about it in past conversations.",
)
