"""Placeholder."""

from collections.abc import Sequence

from retold.agents.protocol import Metered, Source


def meter(sources: Sequence[Source]) -> Sequence[Metered] | None:
    """Return nothing yet."""
    return None
