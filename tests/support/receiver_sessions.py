"""Sessions that are exported to a receiver of spans, and the token sums that it must arrive at."""

from pathlib import Path

from retold.export.formats.registry import ExportSession
from retold.model.session import Text
from support.dialogue_sessions import assistant, call, export_session, usage, user
from support.export_inputs import demo_sessions

FAILING = "gemini:failing"


def receiver_sessions(folder: Path) -> list[ExportSession]:
    """Return a session with a failed call and a rewound answer, then the demo's sessions with subagents."""
    failing = export_session(
        user("Go, then.\0\x1b[31m <script>"),
        assistant(call(status="error", error="no such file"), usage=usage("r1")),
        assistant(Text("It is not there."), minute=2, id="b", fate="rewound", usage=usage("r2")),
        key=FAILING,
    )
    return [failing, *(telling for telling in demo_sessions(folder) if telling.subagents)]


def total_tokens(telling: ExportSession, *figures: str) -> int:
    """Return the sum of some figures of a session's usage, with those of its subagents."""
    own = sum(getattr(telling.session.usage, figure) or 0 for figure in figures)
    return own + sum(total_tokens(child, *figures) for child in telling.subagents.values())
