"""What an export is given: conversations, with the subagents inside their calls, and how to tell them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from retold.model.session import Session


class ExportSession(msgspec.Struct, frozen=True):
    """A conversation to be told."""

    session: Session
    """In the view that was asked for, and already without its secrets, unless they are to stay."""
    subagents: Mapping[str, ExportSession] = {}
    """Those that its calls started (`ToolCall.child`), by their keys; one that is not there is told by its call alone."""


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to tell it; a form that has no use for something takes no notice of it."""

    thoughts: bool = False
    """Also what the model thought."""
    tools: Literal["none", "names", "full"] = "full"
    """Calls not at all, on a line each, or with their arguments and results."""
    tokens: bool = False
    """The tokens of each answer."""
    notices: bool = False
    """Also notices, and what the agent added to messages."""
    is_redacted: bool = True
    """Whether secrets were taken out: a document says so."""
    templates: Path | None = None
    """A folder with templates that win over our own."""
