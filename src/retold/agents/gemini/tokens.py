"""`tokens` of a message to Usage."""

from typing import Any

import msgspec

from retold.agents.gemini.notes import Notes
from retold.agents.gemini.raw import TOKEN_KEYS, Record
from retold.agents.gemini.usual import TokensRecord
from retold.model.usage import Usage

_SUMMED = ("input", "output", "thoughts", "tool")


def usage(tokens: Any, request: str, notes: Notes) -> Usage | None:
    """Return the tokens of one response: `input` includes what was cached, `output` excludes thoughts."""
    if type(tokens) is not dict:
        if tokens is not None:
            notes.kept("unexpected-shape", "tokens is no object")
        return None
    try:
        return counted(request, msgspec.convert(tokens, TokensRecord), notes)
    except msgspec.ValidationError:
        return _partial(tokens, request, notes)


def is_counted(tokens: Any) -> bool:
    """Tell whether a count holds nothing but known whole numbers."""
    return type(tokens) is dict and all(
        key in TOKEN_KEYS and type(count) in (int, type(None)) for key, count in tokens.items()
    )


def counted(request: str, tokens: TokensRecord, notes: Notes) -> Usage:
    """Return a complete count. The API caches by itself and bills no write, so there were none."""
    reconcile(tokens.total, tokens.input + tokens.output + tokens.thoughts + tokens.tool, notes)
    return Usage(
        request, tokens.input, tokens.cached, 0, tokens.output, tokens.thoughts, tokens.tool, tokens.total
    )


def reconcile(total: int, counted: int, notes: Notes) -> None:
    """Write down where a recorded total is not the sum of its parts."""
    if total != counted:
        notes.add("token-total-mismatch", f"{total} recorded, {counted} counted")


def _partial(tokens: Record, request: str, notes: Notes) -> Usage | None:
    """Return what is recorded of an incomplete count; what is missing stays unknown."""
    if not is_counted(tokens):
        notes.kept("unexpected-shape", "tokens that are no known whole numbers")
    counts = {key: tokens[key] for key in TOKEN_KEYS if type(tokens.get(key)) is int}
    if not counts:
        return None
    if {"input", "output", "total"} <= counts.keys():
        reconcile(counts["total"], sum(counts.get(key, 0) for key in _SUMMED), notes)
    return Usage(
        request,
        counts.get("input"),
        counts.get("cached"),
        0,
        counts.get("output"),
        counts.get("thoughts"),
        counts.get("tool"),
        counts.get("total"),
    )
