"""What looks like a history that is being recorded once more: it is not told before the session goes on.

Gemini CLI writes a cancelled turn down again, under new ids, and only with the next prompt does it say that these stand
for the earlier ones (seen with 0.61.0; `docs/decisions/0006-copies-are-told-by-structure.md`). Until then it cannot be known.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from retold.model.session import Context, Message


class FreshMessage(NamedTuple):
    """A message that was not met before."""

    message: Message
    is_repetition: bool
    """Whether it says nothing that was not said before."""
    had_model: bool
    """Whether that was said by a model that is known."""


def pending_copies(fresh: Sequence[FreshMessage]) -> list[Message]:
    """Return those of the new messages that may be echoes: repetitions behind which nothing new comes."""
    last = list(takewhile(lambda one: one.is_repetition, reversed(fresh)))
    return [one.message for one in last] if any(map(_is_marked, last)) else []


def _is_marked(one: FreshMessage) -> bool:
    """Tell whether a message has what a copy has: the environment in a prompt, or an answer without its model."""
    if one.message.role == "assistant":
        return one.message.model is None and one.had_model
    return any(isinstance(part, Context) and part.kind == "environment" for part in one.message.parts)
