"""Tokens that a person chooses, by which others come in."""

SHORTEST = 16
"""Characters of such a token: a shorter one can be guessed."""
FEWEST = 6
"""How many of these differ: a row of one letter can be guessed, too."""


def weakness(token: str) -> str | None:
    """Return why others could guess a token; None if they could not."""
    if len(token) < SHORTEST:
        return f"too short: at least {SHORTEST} characters"
    if len(set(token)) < FEWEST:
        return f"too simple: at least {FEWEST} different characters"
    return None
