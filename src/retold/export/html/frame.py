"""What is the same for everything in one conversation on a page."""

from __future__ import annotations

import msgspec

from retold.export.telling import ExportOptions, ExportSession

DEEPEST = 6
"""How deep subagents are told inside of each other; HTML has as many headings."""


class RenderContext(msgspec.Struct, frozen=True):
    """A conversation on a page: the page's own, or that of a subagent inside a call."""

    telling: ExportSession
    choice: ExportOptions
    prefix: str = "m"
    """What the anchors of its messages begin with."""
    level: int = 2
    """The level of its prompts' headings; answers are a level below, in subagents on the same."""
    depth: int = 0
    first: int | None = None
    """The place of the first entry in the timeline that this is a part of: anchors are places then, else numbers of messages."""

    @property
    def key(self) -> str:
        """The key of the session."""
        return self.telling.session.key

    def inside(self, child: str | None, anchor: str) -> RenderContext | None:
        """Return the frame of a subagent that is told inside of this conversation."""
        telling = self.telling.subagents.get(child) if child else None
        if telling is None or self.depth == DEEPEST:
            return None
        return RenderContext(telling, self.choice, f"{anchor}-", min(5, self.level + 3), self.depth + 1)
