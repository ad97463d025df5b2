"""Counts tokens as the budget of an MCP answer does."""

from retold.mcp.reply import CHARACTERS_PER_TOKEN, count_units


def tokens(text: str) -> int:
    """Return the most tokens that a text takes."""
    return count_units(text) // CHARACTERS_PER_TOKEN + 1
