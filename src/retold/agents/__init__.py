"""One folder per agent, each a module with the same files; strangers to each other."""

TITLES = {"claude": "Claude Code", "codex": "Codex CLI", "gemini": "Gemini CLI"}
"""The agents we know, by the names of their folders, and what their makers call them."""
NAMES = tuple(TITLES)
"""The names of their folders, and how people call them."""
