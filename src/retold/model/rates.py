"""The prices of a model, and the cost of a request in whole numbers: see `report.PICOS`.

A price holds for all tokens of a request: that for prompts over 200,000 tokens, say, for every token of such a prompt.
"""

from __future__ import annotations

from operator import mul

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Figures = Sequence[int | None]
    """The tokens of a request, in the order of `FIGURES`."""
    Charge = tuple[str, int, int]
    """A kind of tokens, their number, and the price of one."""
    Steps = Sequence[Sequence[int]]
    """Pairs of a prompt size and the price of a token in larger prompts."""

KINDS = ("input", "cached", "cache_write", "cache_write_1h", "output")
"""The kinds of tokens with prices; all but `input` and `output` may lack one, and then cost as much as a related kind."""
_KIN = {"cached": "input", "cache_write": "input", "cache_write_1h": "cache_write"}
MOST_TOKENS = 10**9
"""A request that claims more tokens is not believed, and has no price."""


class Rates:
    """The prices of one model at all times."""

    __slots__ = ("_known", "_sizes", "model", "provider", "spans")

    def __init__(self, model: str, provider: str, spans: Sequence[Mapping[str, Any]]) -> None:
        self.model, self.provider = model, provider
        """The names of the model and of the price list."""
        self.spans = spans
        """Prices of which later ones take precedence; each has `per_token`, and may hold from a second on (`since`) or between two
        times of day (`daily`).
        """
        steps = [steps for span in spans for steps in span["per_token"].values()]
        self._sizes = sorted({over for one in steps for over, _ in one}, reverse=True)
        """The prompt sizes at which prices change, the largest first."""
        self._known: dict[tuple[int, int], Sequence[int]] = {}
        """Prices in the order of `KINDS`, by span and prompt size."""

    def charges(self, at: int | None, figures: Figures) -> list[Charge] | None:
        """Return the charges of a request at a time (microseconds since 1970); None if too little is known."""
        tokens = _tokens(figures)
        if tokens is None:
            return None
        priced = zip(KINDS, tokens, self._prices(at, figures), strict=True)
        return [(kind, count, price) for kind, count, price in priced if count]

    def cost(self, at: int | None, figures: Figures) -> int | None:
        """Return the cost of a request; None if too little is known."""
        tokens = _tokens(figures)
        return None if tokens is None else sum(map(mul, tokens, self._prices(at, figures)))

    def over(self, at: int | None, figures: Figures) -> int:
        """Return the prompt size above which the request's prices hold; 0 for the prices of small prompts."""
        prompt = (figures[0] or 0) + (figures[5] or 0)
        steps = [step for steps in self.spans[self._span(at)]["per_token"].values() for step in steps]
        return max([over for over, _ in steps if prompt > over], default=0)

    def _prices(self, at: int | None, figures: Figures) -> Sequence[int]:
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
        return next((place for place in range(last, -1, -1) if _is_in_force(self.spans[place], second)), 0)


def _tokens(figures: Figures) -> Sequence[int] | None:
    """Return the tokens of each kind that are charged; None if too little is known, or the numbers are not believed."""
    given, cached, written, output, reasoning, tool, _, written_1h = figures
    if given is None or output is None:
        return None
    cached, written, reasoning, tool = cached or 0, written or 0, reasoning or 0, tool or 0
    written_1h = written_1h or 0
    if max(given, cached, written, output, reasoning, tool, written_1h) > MOST_TOKENS:
        return None
    prompt = given + tool
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    written_1h = min(written_1h, written)
    return prompt - cached - written, cached, written - written_1h, written_1h, output + reasoning


def _is_in_force(span: Mapping[str, Any], second: int) -> bool:
    if (since := span.get("since")) is not None:
        return bool(second >= since)
    if (daily := span.get("daily")) is not None:
        start, end = daily
        of_day = second % 86_400
        return bool(start <= of_day < end if start <= end else of_day >= start or of_day < end)
    return True


def _price(per_token: Mapping[str, Steps], kind: str, size: int) -> int:
    """Return the price of a token of a kind in prompts above a size."""
    while kind not in per_token:
        kind = _KIN[kind]
    steps = per_token[kind]
    return next((price for over, price in reversed(steps) if size >= over), steps[0][1])


def encode_rates(rates: Rates) -> str:
    """Return prices as JSON text."""
    import json

    fields = {"model": rates.model, "provider": rates.provider, "spans": list(rates.spans)}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def decode_rates(text: str) -> Rates:
    """Return the prices in a JSON text."""
    import json

    fields = json.loads(text)
    return Rates(fields["model"], fields["provider"], fields["spans"])
