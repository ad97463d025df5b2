"""`find_fix`: past solutions of a problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from retold.mcp.passages import format_places, turn_label
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, session_conditions
from retold.projects.matching import path_in_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from retold.insights.failures import CallFailure, Fix
    from retold.insights.past_answers import PastAnswer
    from retold.search.pages import SessionSummary

_LINE = 260
_FILES = 6


class Arguments(Filtered, frozen=True, kw_only=True):
    """The problem and the filters."""

    problem: Annotated[
        str,
        msgspec.Meta(
            description="the problem in plain words, or the error message as it stands",
            min_length=1,
            max_length=2_000,
        ),
    ]


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.insights.past_answers import PastQuestion, find_fixes
    from retold.mcp.passages import answer_passages

    question = PastQuestion(arguments.problem, session_conditions(context, arguments), context.redact)
    return answer_passages(context, find_fixes(context.store, question, context.first_passage), _lines)


def _lines(context: ToolContext, found: PastAnswer, card: SessionSummary) -> Iterator[str]:
    """Yield the hits, the calls that failed there, and what fixed them."""
    yield from format_places(context, card.key, found.result)
    for failure in found.failures:
        yield _failure_line(failure)
        if failure.fix is not None:
            yield _fix_line(failure.fix, card.root)


def _failure_line(failure: CallFailure) -> str:
    about = " ".join(word for word in (failure.tool, failure.target) if word)
    error = " / ".join(failure.error.split("\n"))
    return f"{turn_label(failure.place)} failed: {_cut(about)}{f' -> {_cut(error)}' if error else ''}"


def _fix_line(fix: Fix, root: str | None) -> str:
    files = ", ".join(path_in_project(path, root) for path in fix.files[:_FILES])
    commands = "; ".join(fix.commands[:2])
    done = [f"changed {files}" if files else "", f"ran {commands}" if commands else ""]
    deeds = ", ".join(one for one in done if one)
    words = fix.after or fix.before
    return f"{turn_label(fix.place)} worked again{f' after it {_cut(deeds)}' if deeds else ''}{f': {_cut(words)}' if words else ''}"


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
    empty_text="Nothing like it was found in past conversations.",
)
