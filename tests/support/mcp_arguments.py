"""Valid and invalid arguments for the MCP tools, made from the tools' schemas."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from retold.mcp.tool import Tool

Json = dict[str, Any]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TEXTS = (
    "",
    " ",
    "-",
    '"',
    "*",
    "a OR",
    "is:error",
    "tool:",
    "after:never",
    "7d",
    "2026-02-31",
    "../..",
    "\x00",
    "\ud800",
)
"""Texts that are invalid or unusual as a query, a date, a path or a session."""


def plain_arguments(tool: Tool, text: str) -> Json:
    """Return only the required arguments of a tool; every text is the same."""
    schema = tool.schema()
    return {name: _plain(schema["properties"][name], text) for name in schema.get("required", ())}


def _plain(about: Json, text: str) -> Any:
    if "enum" in about:
        return about["enum"][0]
    kinds: Json = {"string": text, "boolean": True, "array": [], "object": {}}
    return kinds.get(about.get("type", ""), about.get("minimum", 1))


def valid_arguments(tool: Tool, words: Sequence[str]) -> st.SearchStrategy[Json]:
    """Return a strategy for valid arguments: all required ones and some others, with texts from `words`."""
    schema = tool.schema()
    needed = set(schema.get("required", ()))
    fields = {name: _value(about, words) for name, about in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: value for name, value in fields.items() if name in needed},
        optional={name: value for name, value in fields.items() if name not in needed},
    )


def _value(about: Json, words: Sequence[str]) -> st.SearchStrategy[Any]:
    if "enum" in about:
        return st.sampled_from(about["enum"])
    match about.get("type"):
        case "string":
            longest, least = about.get("maxLength", 100), about.get("minLength", 0)
            return (st.sampled_from(words) | st.sampled_from(TEXTS) | st.text(max_size=30)).filter(
                lambda text: least <= len(text) <= longest
            )
        case "integer" | "number":
            return st.integers(about.get("minimum", -10), about.get("maximum", 1_000))
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(_value(about.get("items", {}), words), max_size=3)
        case _:
            return JSON


def invalid_arguments(tool: Tool, words: Sequence[str]) -> st.SearchStrategy[Json]:
    """Return a strategy for arguments that may be wrong, missing or unknown to the tool."""
    names = st.sampled_from(sorted(tool.schema()["properties"])) | st.text(max_size=10)
    changed = st.dictionaries(names, JSON, max_size=3)
    return st.builds(lambda right, wrong: right | wrong, valid_arguments(tool, words), changed) | changed
