"""`find_fix`: how something was solved before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from retold.mcp.passages import place_lines, turn_words
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, narrowed
from retold.projects.matching import in_project

TYPE_CHECKING = False  # what reads sessions is imported when it is asked for
if TYPE_CHECKING:
    from retold.insights.failures import CallFailure, Fix
    from retold.insights.past_answers import PastAnswer
    from retold.search.pages import SessionSummary

_LINE = 260
_FILES = 6


class Arguments(Filtered, frozen=True, kw_only=True):
    """What went wrong."""

    problem: Annotated[
        str,
        msgspec.Meta(
            description="the problem in plain words, or the error message as it stands",
            min_length=1,
            max_length=2_000,
        ),
    ]


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.insights.past_answers import PastQuestion, fixes
    from retold.mcp.passages import passages

    question = PastQuestion(arguments.problem, narrowed(asking, arguments), asking.clean)
    return passages(asking, fixes(asking.record, question, asking.first), _lines)


def _lines(asking: ToolContext, found: PastAnswer, card: SessionSummary) -> Iterator[str]:
    """Yield where the words stand, what failed there, and what mended it."""
    yield from place_lines(asking, card.key, found.holding)
    for failure in found.failures:
        yield _failed(failure)
        if failure.fix is not None:
            yield _mended(failure.fix, card.root)


def _failed(failure: CallFailure) -> str:
    about = " ".join(word for word in (failure.tool, failure.target) if word)
    error = " / ".join(failure.error.split("\n"))
    return f"{turn_words(failure.place)} failed: {_cut(about)}{f' -> {_cut(error)}' if error else ''}"


def _mended(fix: Fix, root: str | None) -> str:
    files = ", ".join(in_project(path, root) for path in fix.files[:_FILES])
    done = [f"changed {files}" if files else "", f"ran {'; '.join(fix.commands[:2])}" if fix.commands else ""]
    told = ", ".join(one for one in done if one)
    words = fix.after or fix.before
    return f"{turn_words(fix.place)} worked again{f' after it {_cut(told)}' if told else ''}{f': {_cut(words)}' if words else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[:_LINE].rsplit(' ', 1)[0]}…"


FIND_FIX = Tool(
    name="find_fix",
    title="How was this solved before?",
    about="Find out how an error or a problem was solved in past conversations. Give the error message, or ask in plain"
    " words; not all of them have to occur. Answers with the conversations that come closest: what was said, which call failed,"
    " which files were changed and when it worked again. Ask this before you debug something that may have been there before.",
    arguments=Arguments,
    answer=_answer,
    nothing="Nothing like it was found in past conversations.",
)
