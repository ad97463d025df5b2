"""Tokens that a person chooses, by which others come in."""

SHORTEST = 16
"""Characters of such a token: a shorter one can be guessed."""
