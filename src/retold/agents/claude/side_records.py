"""Folds lines outside the conversation: notices of the system, injected context, titles, modes, checkpoints.

`docs/formats/claude.md`, section 4, has the table of their types.
"""

from typing import Any

from retold.agents.claude.messages import normalise_user_blocks
from retold.agents.claude.prompt_text import is_human, split_prompt
from retold.agents.claude.raw import Record, convert_block
from retold.agents.claude.state import (
    FACTS,
    MAIN,
    Node,
    PreservedLines,
    State,
    fold_queue_operation,
    remove_from_queue,
)
from retold.model.session import Attachment, Context, Entry, Event, EventKind, Message, Opaque
from retold.reading.diagnostics import ReaderNotes

TITLE_FIELDS = {
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "agent-name": "agentName",
    "summary": "summary",
}
STATE_TYPES = frozenset(
    ("progress", "file-history-snapshot", "file-history-delta", "permission-mode", "mode", "pr-link",
     "bridge-session", "worktree-state", "relocated", "frame-link", "agent-setting", "agent-color", "atis-latch",
     "tag", "content-replacement", "attribution-snapshot", "api-request", "api-request-shape", "api-request-blob",
     "tools-used", "cost-state", "derived-from", "session-owner", "ended-by-model", "history-suppression",
     "fork-context-ref", "memory-mode", "repl-mode", "isolation-latch", "dev-mods")
)  # fmt: skip
_LEVELS: dict[Any, EventKind] = {"error": "error", "warning": "warning", "info": "info", "suggestion": "info"}
_KNOWN_KEYS = frozenset(
    ("uuid", "parentUuid", "isSidechain", "sessionId", "session_id", "timestamp", "version", "cwd", "gitBranch",
     "userType", "entrypoint", "slug", "agentId")
)  # fmt: skip
"""Keys that the entry, its session or its place in the chain already hold."""
_MENTIONS = ("file", "directory", "selected_lines_in_ide", "opened_file_in_ide", "compact_file_reference")


def fold_side_record(record: Record, state: State, notes: ReaderNotes) -> bool:
    """Fold a side record; return False if its type is unknown."""
    kind = record["type"]
    at = notes.parse_time(record.get("timestamp"))
    setting = tuple(record.get(fact) for fact in FACTS)
    if setting != state.last_facts and any(setting):
        state.note_facts(setting)
    if kind == "system":
        entry = _system_entry(record, Event(_record_id(record), "notice", at, "live", ""), state)
        state.add(_make_node(record, entry, state))
    elif kind == "attachment":
        entry = _attachment_entry(record, Event(_record_id(record), "notice", at, "live", ""), state, notes)
        state.add(_make_node(record, entry, state))
    elif kind == "queue-operation":
        fold_queue_operation(record, at, state)
    elif kind in TITLE_FIELDS:
        _note_title(record, state)
    elif kind == "last-prompt":
        _note_last_prompt(record, state)
    elif kind in STATE_TYPES:
        _add_state_record(
            record, Event(_record_id(record), "notice", at, "live", "", extra=_extra(record)), state
        )
    else:
        return False
    return True


def make_unknown_node(value: Any, state: State, notes: ReaderNotes) -> Node:
    """Return a node for an unknown line, unchanged; other lines may hang on it."""
    if type(value) is not dict:
        return Node(Event(None, "notice", None, "live", "", Opaque(value)))
    at = notes.parse_time(value.get("timestamp"))
    return _make_node(value, Event(_record_id(value), "notice", at, "live", "", Opaque(value)), state)


def _record_id(record: Record) -> str | None:
    name = record.get("uuid")
    return name if type(name) is str else None


def _make_node(record: Record, entry: Entry, state: State) -> Node:
    parent, session = record.get("parentUuid"), record.get("sessionId")
    above = parent if type(parent) is str else None
    return Node(
        entry,
        above,
        session if type(session) is str else None,
        state.chain_of(entry.id, above) if record.get("isSidechain") is True else MAIN,
        is_chained=entry.id is not None,
    )


def _extra(record: Record, *told: str) -> Record:
    return {
        key: value
        for key, value in record.items()
        if key not in _KNOWN_KEYS and key not in told and value is not None
    }


def _system_entry(record: Record, event: Event, state: State) -> Entry:
    """Return the entry of a notice: its kind by its subject, else by its level."""
    content, subtype = record.get("content"), record.get("subtype")
    text = content if type(content) is str else ""
    extra = _extra(record, "content") if type(content) is str else _extra(record)
    kind = _LEVELS.get(record.get("level"), "notice") if type(record.get("level")) is str else "notice"
    if subtype == "compact_boundary":
        kind = "compaction"
        _note_preserved(event.id or "", record.get("compactMetadata"), state)
    elif subtype in ("api_error", "error"):
        kind, text = "warning", text or _error_text(record.get("error"))
    elif subtype == "local_command":
        prompt, parts = split_prompt(text)
        if prompt is not None:
            return Message(event.id, "user", event.at, "live", prompt, None, None, tuple(parts), extra=extra)
    elif subtype == "model_refusal_fallback":
        names = record.get("retractedMessageUuids")
        state.retracted_ids.update(
            name for name in (names if type(names) is list else ()) if type(name) is str
        )
    return Event(event.id, kind, event.at, "live", text, extra=extra)


def _note_preserved(boundary: str, metadata: Any, state: State) -> None:
    """Note the lines that a compaction preserves: by id, or by the first and the last of them."""
    match metadata:
        case {"preservedMessages": {"anchorUuid": str(anchor), "uuids": list(names)}}:
            known = tuple(name for name in names if type(name) is str)
            state.preserved[boundary] = PreservedLines(anchor, names=known)
        case {"preservedSegment": {"anchorUuid": str(anchor), "headUuid": str(head), "tailUuid": str(tail)}}:
            state.preserved[boundary] = PreservedLines(anchor, head, tail)


def _error_text(error: Any) -> str:
    """Return the message in an error, however deep it lies."""
    for _ in range(3):
        if type(error) is not dict:
            return error if type(error) is str else ""
        if type(error.get("message")) is str:
            return str(error["message"])
        error = error.get("error")
    return ""


def _attachment_entry(record: Record, event: Event, state: State, notes: ReaderNotes) -> Entry:
    """Return the entry of injected context: words typed while the agent was busy, referenced files, or neither."""
    attachment, extra = record.get("attachment"), _extra(record)
    kind = attachment.get("type") if type(attachment) is dict else None
    if type(attachment) is dict and kind == "queued_command" and _is_typed_command(attachment):
        content = attachment["prompt"]
        prompt, parts = normalise_user_blocks(
            content if type(content) is str else [convert_block(item, notes)[0] for item in content], notes
        )
        if prompt is not None:
            remove_from_queue(state, prompt)
            extra["attachment"] = {key: value for key, value in attachment.items() if key != "prompt"}
            return Message(event.id, "user", event.at, "live", prompt, None, None, tuple(parts), extra=extra)
    if type(attachment) is dict and kind in _MENTIONS:
        path = attachment.get("filename") or attachment.get("path")
        parts = [Attachment(path=path if type(path) is str else None), Context("referenced_files", None)]
        return Message(event.id, "user", event.at, "live", None, None, None, tuple(parts), extra=extra)
    return Event(event.id, "notice", event.at, "live", "", extra=extra)


def _is_typed_command(attachment: Record) -> bool:
    """Return whether a person typed a queued command."""
    return (
        type(attachment.get("prompt")) in (str, list)
        and attachment.get("commandMode", "prompt") == "prompt"
        and attachment.get("isMeta") is not True
        and is_human(attachment)
    )


def _note_title(record: Record, state: State) -> None:
    """Note a title; a summary belongs to the session in which its `leafUuid` is."""
    kind = record["type"]
    title, leaf = record.get(TITLE_FIELDS[kind]), record.get("leafUuid")
    if type(title) is str and title.strip():
        if kind == "summary":
            state.titles[f"summary of {leaf}"] = title
        else:
            state.titles[kind] = title
    _add_state_record(record, Event(None, "notice", None, "live", "", extra=_extra(record)), state)


def _note_last_prompt(record: Record, state: State) -> None:
    """Note the leaf of the conversation; the prompt itself is a copy."""
    leaf, prompt = record.get("leafUuid"), record.get("lastPrompt")
    if "leafUuid" in record:
        state.leaf = leaf if type(leaf) is str else None
        state.is_leaf_explicit = record.get("explicit") is True
    if type(prompt) is not str or prompt.rstrip("….").strip() not in state.last_prompt:
        _add_state_record(record, Event(None, "notice", None, "live", "", extra=_extra(record)), state)


def _add_state_record(record: Record, event: Event, state: State) -> None:
    """Add a record of a state, unless it repeats the last one of its type."""
    kind = record["type"]
    if event.id is None and state.last_side_records.get(kind) == event.extra:
        return
    state.last_side_records[kind] = event.extra or {}
    state.add(_make_node(record, event, state))
