"""What is counted of work: of a day, a model, a project, or whatever else it is counted by.

Plain classes: a report is asked for often, and is told without the libraries that reading takes.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from decimal import Decimal

FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total", "cache_write_1h")
"""The tokens of a request, as `Usage` names them."""
_PLACES = 12
PICOS = 10**_PLACES
"""Money is counted in millionths of a millionth of a dollar: a token at a price per million tokens is a whole number."""


class Spend:
    """Tokens and money of some requests, each counted once."""

    __slots__ = ("figures", "picos", "requests", "unpriced")

    def __init__(
        self,
        requests: int = 0,
        figures: Mapping[str, int | None] | None = None,
        picos: int | None = None,
        unpriced: int = 0,
    ) -> None:
        self.requests = requests
        self.figures = dict(figures or dict.fromkeys(FIGURES))
        """By the names of `FIGURES`; None where nobody recorded one."""
        self.picos = picos
        """What those with a price cost; None where none has one."""
        self.unpriced = unpriced
        """How many have no price."""

    def __add__(self, other: Spend) -> Spend:
        figures = {name: plus(self.figures[name], other.figures[name]) for name in FIGURES}
        picos = plus(self.picos, other.picos)
        return Spend(self.requests + other.requests, figures, picos, self.unpriced + other.unpriced)

    @property
    def cost(self) -> Decimal | None:
        """The money in dollars."""
        return None if self.picos is None else dollars(self.picos)


class Line:
    """One line of a report: what was spent and done on, with or in one thing."""

    __slots__ = (
        "active_seconds",
        "compactions",
        "estimated",
        "measured",
        "of",
        "prompts",
        "sessions",
        "tool_calls",
        "tool_errors",
        "tool_retries",
    )

    def __init__(  # noqa: PLR0913 - one for each thing that is counted
        self,
        of: str,
        measured: Spend,
        estimated: Spend,
        *,
        sessions: int | None = None,
        prompts: int | None = None,
        tool_calls: int | None = None,
        tool_errors: int | None = None,
        tool_retries: int | None = None,
        active_seconds: int | None = None,
        compactions: int | None = None,
    ) -> None:
        self.of = of
        """`2026-01-27`, `2026-W05`, `2026-01`, a model, a project's root, an agent, a tool, a session's key."""
        self.measured = measured
        self.estimated = estimated
        """Guesses, for sessions that recorded no tokens: never added to what was measured."""
        self.sessions, self.prompts, self.compactions = sessions, prompts, compactions
        self.tool_calls, self.tool_errors, self.tool_retries = tool_calls, tool_errors, tool_retries
        self.active_seconds = active_seconds
        """None, as everywhere here, where that cannot be counted by such a thing."""


def dollars(picos: int) -> Decimal:
    """Return money in dollars, to the last place."""
    from decimal import Context, Decimal

    return Decimal(picos).scaleb(-_PLACES, Context(prec=60)) if picos else Decimal(0)


def plus(one: int | None, other: int | None) -> int | None:
    """Add what is known."""
    return one if other is None else other if one is None else one + other


def summed(spends: Iterable[Spend]) -> Spend:
    """Return all of it."""
    return sum(spends, Spend())
