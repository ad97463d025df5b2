"""retold archives, searches and shows conversations with coding agents.

>>> import retold
>>> for session in retold.read("tests/fixtures/gemini_sample.json"):
...     print(session.title)
Why does the date parser drop the time zone?
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from retold.agents.registry import NotASession, read
    from retold.api import Archive, Hit, Match, open, sync  # noqa: A004 - read as `retold.open`
    from retold.model.events import steps
    from retold.model.problem import Problem
    from retold.model.report import Line, Spend
    from retold.model.session import (
        Attachment,
        Context,
        Event,
        Message,
        Opaque,
        Project,
        Session,
        Text,
        Thinking,
        ToolCall,
        Totals,
        Usage,
    )

__version__ = "0.1.0"

_HOMES = {
    "Archive": "retold.api",
    "Attachment": "retold.model.session",
    "Context": "retold.model.session",
    "Event": "retold.model.session",
    "Hit": "retold.api",
    "Line": "retold.model.report",
    "Match": "retold.api",
    "Message": "retold.model.session",
    "NotASession": "retold.agents.registry",
    "Opaque": "retold.model.session",
    "Problem": "retold.model.problem",
    "Project": "retold.model.session",
    "Session": "retold.model.session",
    "Spend": "retold.model.report",
    "Text": "retold.model.session",
    "Thinking": "retold.model.session",
    "ToolCall": "retold.model.session",
    "Totals": "retold.model.session",
    "Usage": "retold.model.session",
    "open": "retold.api",
    "read": "retold.agents.registry",
    "steps": "retold.model.events",
    "sync": "retold.api",
}

__all__ = [
    "Archive", "Attachment", "Context", "Event", "Hit", "Line", "Match", "Message", "NotASession", "Opaque", "Problem", "Project",
    "Session", "Spend", "Text", "Thinking", "ToolCall", "Totals", "Usage", "__version__", "open", "read", "steps", "sync",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `import retold` itself costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - start-up is a feature

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
