"""Tokens: of one request, and summed. `None` is unknown, 0 is zero."""

from collections.abc import Iterable

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The tokens of one request to a model.

    `input` is the whole prompt, cache reads (`cached`) and writes included; `reasoning` is not in `output`.
    """

    request: str
    """The agent's own request id, else `<native session id>/<message id>`: the same in every copy."""
    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool: int | None
    total: int | None
    estimated: bool = False


class Totals(msgspec.Struct, frozen=True, gc=False):
    """The tokens of several requests, each counted once."""

    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool: int | None
    total: int | None
    requests: int
    estimated: bool


FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total")


def totals(usages: Iterable[Usage]) -> Totals:
    """Sum what is recorded, each request once; a figure that nobody recorded stays unknown."""
    once = {usage.request: usage for usage in usages}
    sums: dict[str, int | None] = dict.fromkeys(FIGURES)
    for usage in once.values():
        for figure in FIGURES:
            value: int | None = getattr(usage, figure)
            if value is not None:
                sums[figure] = (sums[figure] or 0) + value
    estimated = any(usage.estimated for usage in once.values())
    return Totals(**sums, requests=len(once), estimated=estimated)
