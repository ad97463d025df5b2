"""Which sessions are meant."""

from datetime import datetime

import msgspec

from retold.model.entries import Message
from retold.model.parts import ToolCall
from retold.model.session import Session
from retold.projects.matching import is_called

LISTED = ("main", "fork", "prompts-only")
"""The kinds that a list shows unless asked for all."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What a session must be like; every condition that is set must hold."""

    agent: str | None = None
    project: str | None = None
    model: str | None = None
    tool: str | None = None
    file: str | None = None
    status: str | None = None
    tag: str | None = None
    home: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def accepts(self, session: Session) -> bool:
        """Tell whether a session is meant."""
        return self._accepts_facts(session) and self._accepts_time(session) and self._accepts_calls(session)

    def _accepts_facts(self, session: Session) -> bool:
        return (
            self.agent in (None, session.agent)
            and self.status in (None, session.status)
            and (self.project is None or is_called(session.project, self.project))
            and (
                self.model is None
                or any(self.model.casefold() in model.casefold() for model in session.models)
            )
            and (self.tag is None or self.tag in session.tags)
            and (self.home is None or any(source.home == self.home for source in session.sources))
        )

    def _accepts_time(self, session: Session) -> bool:
        """A session counts from when it ended, and until when it began."""
        if self.since is not None and (session.ended_at is None or session.ended_at < self.since):
            return False
        return self.until is None or (session.started_at is not None and session.started_at < self.until)

    def _accepts_calls(self, session: Session) -> bool:
        if self.tool is None and self.file is None:
            return True
        calls = [
            part for entry in session.timeline if isinstance(entry, Message) for part in entry.parts
            if isinstance(part, ToolCall)
        ]  # fmt: skip
        used = self.tool is None or any(
            self.tool in (call.name, call.canonical, call.server) for call in calls
        )
        named = self.file is None or any(
            self.file in str(value) for call in calls for value in call.arguments.values()
        )
        return used and named
