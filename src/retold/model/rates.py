"""What a model's tokens cost, and what a request therefore did: whole numbers, as `report.PICOS` counts money.

A rate holds for all tokens of a request: the one for prompts over 200,000 tokens, say, for every token of such a prompt.
"""

from __future__ import annotations

from operator import mul

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Figures = Sequence[int | None]
    """The tokens of a request, in the order of `report.FIGURES`."""
    Charge = tuple[str, int, int]
    """What is paid for, how many tokens of it, and the price of one."""
    Steps = Sequence[Sequence[int]]
    """Pairs: over how many tokens of prompt, and the price of a token from there on."""

KINDS = ("input", "cached", "cache_write", "cache_write_1h", "output")
"""What has a price of its own; all but `input` and `output` may lack one, and then cost what their kin cost."""
_KIN = {"cached": "input", "cache_write": "input", "cache_write_1h": "cache_write"}
MOST = 10**9
"""Tokens that no request has: whoever claims more is not believed, and has no price."""


class Rates:
    """The prices of one model, as they were at all times."""

    __slots__ = ("_known", "_sizes", "model", "provider", "spans")

    def __init__(self, model: str, provider: str, spans: Sequence[Mapping[str, Any]]) -> None:
        self.model, self.provider = model, provider
        """By whose name and in whose list they stand."""
        self.spans = spans
        """In the order in which later ones win; each with `per_token`, and perhaps the second from which it holds
        (`since`) or those of the day between which it does (`daily`)."""
        steps = [steps for span in spans for steps in span["per_token"].values()]
        self._sizes = sorted({over for one in steps for over, _ in one}, reverse=True)
        """The sizes of prompts from which on a price may be another, the largest first."""
        self._known: dict[tuple[int, int], Sequence[int]] = {}
        """Prices in the order of `KINDS`, by span and size of prompt."""

    def charges(self, at: int | None, figures: Figures) -> list[Charge] | None:
        """Return what a request at a time (microseconds since 1970) is charged for; None where too little is known."""
        tokens = _tokens(figures)
        if tokens is None:
            return None
        told = zip(KINDS, tokens, self._prices(at, figures), strict=True)
        return [(kind, count, price) for kind, count, price in told if count]

    def cost(self, at: int | None, figures: Figures) -> int | None:
        """Return what a request cost."""
        tokens = _tokens(figures)
        return None if tokens is None else sum(map(mul, tokens, self._prices(at, figures)))

    def over(self, at: int | None, figures: Figures) -> int:
        """Return the size of prompt from which on the prices of a request hold; 0 where they are those of smaller ones."""
        prompt = (figures[0] or 0) + (figures[5] or 0)
        steps = [step for steps in self.spans[self._span(at)]["per_token"].values() for step in steps]
        return max([over for over, _ in steps if prompt > over], default=0)

    def _prices(self, at: int | None, figures: Figures) -> Sequence[int]:
        """Return the prices of a token of each kind."""
        prompt = (figures[0] or 0) + (figures[5] or 0)
        size = next((over for over in self._sizes if prompt > over), 0)
        span = self._span(at)
        prices = self._known.get((span, size))
        if prices is None:
            per_token = self.spans[span]["per_token"]
            prices = self._known[span, size] = [_price(per_token, kind, size) for kind in KINDS]
        return prices

    def _span(self, at: int | None) -> int:
        last = len(self.spans) - 1
        if at is None or not last:
            return last
        second = at // 1_000_000
        return next((place for place in range(last, -1, -1) if _holds(self.spans[place], second)), 0)


def _tokens(figures: Figures) -> Sequence[int] | None:
    """Return how many tokens of each kind are paid for; None where too little is known, or nothing to be believed."""
    given, cached, written, output, reasoning, tool, _, written_1h = figures
    if given is None or output is None:
        return None
    cached, written, reasoning, tool = cached or 0, written or 0, reasoning or 0, tool or 0
    written_1h = written_1h or 0
    if max(given, cached, written, output, reasoning, tool, written_1h) > MOST:
        return None
    prompt = given + tool
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    written_1h = min(written_1h, written)
    return prompt - cached - written, cached, written - written_1h, written_1h, output + reasoning


def _holds(span: Mapping[str, Any], second: int) -> bool:
    if (since := span.get("since")) is not None:
        return bool(second >= since)
    if (daily := span.get("daily")) is not None:
        start, end = daily
        of_day = second % 86_400
        return bool(start <= of_day < end if start <= end else of_day >= start or of_day < end)
    return True


def _price(per_token: Mapping[str, Steps], kind: str, size: int) -> int:
    """Return the price of a token of some kind in prompts over a size."""
    while kind not in per_token:
        kind = _KIN[kind]
    steps = per_token[kind]
    return next((price for over, price in reversed(steps) if size >= over), steps[0][1])


def rates_text(rates: Rates) -> str:
    """Return prices as they are kept."""
    import json

    told = {"model": rates.model, "provider": rates.provider, "spans": list(rates.spans)}
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def rates_from(text: str) -> Rates:
    """Return prices that were kept."""
    import json

    told = json.loads(text)
    return Rates(told["model"], told["provider"], told["spans"])
