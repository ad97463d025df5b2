"""One folder per agent, each a module with the same files; strangers to each other."""

NAMES = ("claude", "codex", "gemini")
"""The agents we know: the names of their folders, and how people call them."""
