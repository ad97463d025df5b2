"""The coding agents: one package for each, with the same modules. The packages do not import each other."""

TITLES = {"claude": "Claude Code", "codex": "Codex CLI", "gemini": "Gemini CLI"}
"""The agents by the names of their packages, with the names that their makers give them."""
NAMES = tuple(TITLES)
"""The names of the packages. Users write them, too."""
