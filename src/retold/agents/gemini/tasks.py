"""Tasks that an agent gave its subagent: up to 0.36 they stand as user messages in the main file.

Such a message comes before the call that started the subagent, and holds the call's argument: between tags, as
`<objective>…</objective>`, or bare. A person's own words may well hold it too, but they begin a turn: where the answer
before still had tools running, or there was none since the last prompt, nobody had the word but the agent.
"""

import re
from collections.abc import Sequence

import msgspec

from retold.agents.gemini.pairing import Placed
from retold.agents.gemini.tools import STARTS_AGENT
from retold.agents.gemini.words import as_task
from retold.model.session import Message, Part, ToolCall


def with_tasks_told(placed: Sequence[Placed]) -> list[Placed]:
    """Return the entries with every task marked as such: nobody typed it."""
    told = list(placed)
    asked: tuple[int, Message, bool] | None = None
    is_going_on = False
    for index, (entry, _, _) in enumerate(placed):
        if type(entry) is not Message:
            continue
        if entry.prompt is not None:
            asked = (index, entry, is_going_on)
        elif asked is not None and entry.role == "assistant":
            place, question, within_turn = asked
            if any(_holds_task(part, question.prompt or "", within_turn) for part in entry.parts):
                task = msgspec.structs.replace(question, prompt=None, parts=as_task(question.parts))
                told[place] = placed[place]._replace(entry=task)
                asked = None
        is_going_on = entry.role == "user" or any(type(part) is ToolCall for part in entry.parts)
    return told


def _holds_task(part: Part, text: str, is_going_on: bool) -> bool:  # noqa: FBT001 - what is known of the turn
    """Tell whether a call was started with this text: its argument stands in it, wrapped or within a turn."""
    if type(part) is not ToolCall or part.name not in STARTS_AGENT:
        return False
    values = [
        value.strip() for value in part.arguments.values() if type(value) is str and value.strip() in text
    ]
    return any(value and (is_going_on or _is_wrapped(value, text)) for value in values)


def _is_wrapped(value: str, text: str) -> bool:
    return re.search(rf"<(\w+)>\s*{re.escape(value)}\s*</\1>", text) is not None
