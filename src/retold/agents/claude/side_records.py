"""Lines that are not said by anyone: notices of the system, injected context, titles, modes, checkpoints.

`docs/formats/claude.md`, section 4, has the table of their types.
"""

from typing import Any

from retold.agents.claude.messages import said_parts
from retold.agents.claude.prompt_text import is_human, said
from retold.agents.claude.raw import Record, block
from retold.agents.claude.state import FACTS, MAIN, Node, Preserved, State, delivered, operation
from retold.model.session import Attachment, Context, Entry, Event, EventKind, Message, Opaque
from retold.reading.diagnostics import ReaderNotes

TITLES = {
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "agent-name": "agentName",
    "summary": "summary",
}
KNOWN = frozenset(
    ("progress", "file-history-snapshot", "file-history-delta", "permission-mode", "mode", "pr-link",
     "bridge-session", "worktree-state", "relocated", "frame-link", "agent-setting", "agent-color", "atis-latch",
     "tag", "content-replacement", "attribution-snapshot", "api-request", "api-request-shape", "api-request-blob",
     "tools-used", "cost-state", "derived-from", "session-owner", "ended-by-model", "history-suppression",
     "fork-context-ref", "memory-mode", "repl-mode", "isolation-latch", "dev-mods")
)  # fmt: skip
_LEVELS: dict[Any, EventKind] = {"error": "error", "warning": "warning", "info": "info", "suggestion": "info"}
_TOLD = frozenset(
    ("uuid", "parentUuid", "isSidechain", "sessionId", "session_id", "timestamp", "version", "cwd", "gitBranch",
     "userType", "entrypoint", "slug", "agentId")
)  # fmt: skip
"""What the entry, its session or its place in the chain already tell."""
_MENTIONS = ("file", "directory", "selected_lines_in_ide", "opened_file_in_ide", "compact_file_reference")


def beside(record: Record, state: State, notes: ReaderNotes) -> bool:
    """Fold a line in that stands beside the conversation; False if nobody knows its kind."""
    kind = record["type"]
    at = notes.time(record.get("timestamp"))
    setting = tuple(record.get(fact) for fact in FACTS)
    if setting != state.setting and any(setting):
        state.note(setting)
    if kind == "system":
        entry = _system(record, Event(_name(record), "notice", at, "live", ""), state)
        state.add(_chained(record, entry, state))
    elif kind == "attachment":
        entry = _attached(record, Event(_name(record), "notice", at, "live", ""), state, notes)
        state.add(_chained(record, entry, state))
    elif kind == "queue-operation":
        operation(record, at, state)
    elif kind in TITLES:
        _title(record, state)
    elif kind == "last-prompt":
        _last_prompt(record, state)
    elif kind in KNOWN:
        _state(record, Event(_name(record), "notice", at, "live", "", extra=_beyond(record)), state)
    else:
        return False
    return True


def unknown(value: Any, state: State, notes: ReaderNotes) -> Node:
    """Return a line that nobody understands as it is; others may still hang on it."""
    if type(value) is not dict:
        return Node(Event(None, "notice", None, "live", "", Opaque(value)))
    at = notes.time(value.get("timestamp"))
    return _chained(value, Event(_name(value), "notice", at, "live", "", Opaque(value)), state)


def _name(record: Record) -> str | None:
    name = record.get("uuid")
    return name if type(name) is str else None


def _chained(record: Record, entry: Entry, state: State) -> Node:
    parent, session = record.get("parentUuid"), record.get("sessionId")
    above = parent if type(parent) is str else None
    return Node(
        entry,
        above,
        session if type(session) is str else None,
        state.chain_of(entry.id, above) if record.get("isSidechain") is True else MAIN,
        is_chained=entry.id is not None,
    )


def _beyond(record: Record, *told: str) -> Record:
    return {
        key: value
        for key, value in record.items()
        if key not in _TOLD and key not in told and value is not None
    }


def _system(record: Record, event: Event, state: State) -> Entry:
    """Return a notice: its kind by what it is about, else by its level."""
    content, subtype = record.get("content"), record.get("subtype")
    text = content if type(content) is str else ""
    extra = _beyond(record, "content") if type(content) is str else _beyond(record)
    kind = _LEVELS.get(record.get("level"), "notice") if type(record.get("level")) is str else "notice"
    if subtype == "compact_boundary":
        kind = "compaction"
        _preserve(event.id or "", record.get("compactMetadata"), state)
    elif subtype in ("api_error", "error"):
        kind, text = "warning", text or _message(record.get("error"))
    elif subtype == "local_command":
        prompt, parts = said(text)
        if prompt is not None:
            return Message(event.id, "user", event.at, "live", prompt, None, None, tuple(parts), extra=extra)
    elif subtype == "model_refusal_fallback":
        names = record.get("retractedMessageUuids")
        state.retracted.update(name for name in (names if type(names) is list else ()) if type(name) is str)
    return Event(event.id, kind, event.at, "live", text, extra=extra)


def _preserve(boundary: str, metadata: Any, state: State) -> None:
    """Take note of the lines that a compaction leaves as they are: by name, or by the first and the last of them."""
    match metadata:
        case {"preservedMessages": {"anchorUuid": str(anchor), "uuids": list(names)}}:
            known = tuple(name for name in names if type(name) is str)
            state.preserved[boundary] = Preserved(anchor, names=known)
        case {"preservedSegment": {"anchorUuid": str(anchor), "headUuid": str(head), "tailUuid": str(tail)}}:
            state.preserved[boundary] = Preserved(anchor, head, tail)


def _message(error: Any) -> str:
    """Return the words in an error, however deep they lie."""
    for _ in range(3):
        if type(error) is not dict:
            return error if type(error) is str else ""
        if type(error.get("message")) is str:
            return str(error["message"])
        error = error.get("error")
    return ""


def _attached(record: Record, event: Event, state: State, notes: ReaderNotes) -> Entry:
    """Return injected context: words that were typed while the agent was busy, files that were named, or neither."""
    held, extra = record.get("attachment"), _beyond(record)
    kind = held.get("type") if type(held) is dict else None
    if type(held) is dict and kind == "queued_command" and _is_typed(held):
        content = held["prompt"]
        prompt, parts = said_parts(
            content if type(content) is str else [block(item, notes)[0] for item in content], notes
        )
        if prompt is not None:
            delivered(state, prompt)
            extra["attachment"] = {key: value for key, value in held.items() if key != "prompt"}
            return Message(event.id, "user", event.at, "live", prompt, None, None, tuple(parts), extra=extra)
    if type(held) is dict and kind in _MENTIONS:
        path = held.get("filename") or held.get("path")
        parts = [Attachment(path=path if type(path) is str else None), Context("referenced_files", None)]
        return Message(event.id, "user", event.at, "live", None, None, None, tuple(parts), extra=extra)
    return Event(event.id, "notice", event.at, "live", "", extra=extra)


def _is_typed(held: Record) -> bool:
    """Tell whether a person typed what waited in the queue."""
    return (
        type(held.get("prompt")) in (str, list)
        and held.get("commandMode", "prompt") == "prompt"
        and held.get("isMeta") is not True
        and is_human(held)
    )


def _title(record: Record, state: State) -> None:
    """Take note of a title; a summary that is about the end of another session is not this one's."""
    kind = record["type"]
    title, leaf = record.get(TITLES[kind]), record.get("leafUuid")
    if type(title) is str and title.strip():
        if kind == "summary":
            state.titles[f"summary of {leaf}"] = title
        else:
            state.titles[kind] = title
    _state(record, Event(None, "notice", None, "live", "", extra=_beyond(record)), state)


def _last_prompt(record: Record, state: State) -> None:
    """Take note of where the conversation goes on; the prompt itself is a copy."""
    leaf, prompt = record.get("leafUuid"), record.get("lastPrompt")
    if "leafUuid" in record:
        state.leaf = leaf if type(leaf) is str else None
        state.is_leaf_explicit = record.get("explicit") is True
    if type(prompt) is not str or prompt.rstrip("….").strip() not in state.said:
        _state(record, Event(None, "notice", None, "live", "", extra=_beyond(record)), state)


def _state(record: Record, event: Event, state: State) -> None:
    """Add a line that tells how things stand, unless it only says again what the last of its kind said."""
    kind = record["type"]
    if event.id is None and state.beside.get(kind) == event.extra:
        return
    state.beside[kind] = event.extra or {}
    state.add(_chained(record, event, state))
