"""The words of Codex's files, as Codex spells them."""

from typing import Any

Record = dict[str, Any]
"""A payload, or the line around it."""

ITEM_TYPES = frozenset(
    (
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
        "local_shell_call", "web_search_call", "tool_search_call", "tool_search_output", "image_generation_call",
        "agent_message", "additional_tools", "compaction", "context_compaction", "compaction_summary",
        "compaction_trigger", "ghost_snapshot",
    )
)  # fmt: skip
"""What a `response_item` may be; up to 0.32 these stand on lines of their own."""

LINE_TYPES = frozenset(
    (
        "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
        "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata",
    )
)  # fmt: skip


def text_or_none(value: Any) -> str | None:
    """Return a text that says something."""
    return value if type(value) is str and value else None


def listed(value: Any) -> list[Any]:
    """Return a list; an empty one in place of anything else."""
    return value if type(value) is list else []


def rest(record: Record, known: frozenset[str]) -> Record | None:
    """Return what a record holds beyond the known and the empty, under Codex's own names."""
    if record.keys() <= known:
        return None
    left = {key: value for key, value in record.items() if key not in known and (value or value == 0)}
    return left or None
