"""What of a conversation is shown: chosen with a click, and remembered."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from retold.web.answer import PageRequest

COOKIE = "retold-show"
TOOLS = ("none", "calls", "open")
_NOTHING = "nothing"


class Toggle(msgspec.Struct, frozen=True):
    """A thing that is shown or not."""

    name: str
    label: str
    key: str
    """On the keyboard."""


TOGGLES = (
    Toggle("thoughts", "Thoughts", "t"),
    Toggle("branches", "Taken back", "b"),
    Toggle("notices", "Context", "c"),
    Toggle("tokens", "Tokens", "u"),
)
_NAMES = tuple(toggle.name for toggle in TOGGLES)


class DisplayOptions(msgspec.Struct, frozen=True):
    """What is shown, and how much of tool calls."""

    names: frozenset[str] = frozenset(("branches",))
    tools: str = "calls"

    @property
    def text(self) -> str:
        """The choice, as an address and the cookie carry it."""
        chosen = [name for name in (*_NAMES, *TOOLS[1:]) if name in self.names or name == self.tools]
        return ".".join(chosen) or _NOTHING

    @property
    def classes(self) -> str:
        """The choice, as the style sheet knows it."""
        names = [name for name in _NAMES if name in self.names]
        return " ".join(f"show-{name}" for name in (*names, *(["calls"] if self.tools != "none" else [])))

    def flipped(self, name: str) -> DisplayOptions:
        """Return the choice with one thing the other way."""
        return DisplayOptions(self.names ^ {name}, self.tools)

    def with_tools(self, tools: str) -> DisplayOptions:
        """Return the choice with more or less of tool calls."""
        return DisplayOptions(self.names, tools)


def shows(asked: PageRequest) -> DisplayOptions:
    """Return what is to be shown: as the address says, else as it was chosen last."""
    told = asked.get("show") or asked.cookies.get(COOKIE, "")
    words = frozenset(told.split("."))
    if not words & {*_NAMES, *TOOLS, _NOTHING}:
        return DisplayOptions()
    return DisplayOptions(words & frozenset(_NAMES), next(_tools(words)))


def _tools(words: frozenset[str]) -> Iterator[str]:
    yield from (tools for tools in reversed(TOOLS) if tools in words)
    yield "none"
