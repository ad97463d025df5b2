"""What is counted of work: of a day, a model, a project, or whatever else it is counted by.

Plain classes: a report is asked for often, and is told without the libraries that reading takes.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
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


class ToolFigures:
    """How one tool did, over all its calls."""

    __slots__ = ("calls", "canonical", "errors", "name", "retries", "seconds", "slowest_seconds", "timed")

    def __init__(  # noqa: PLR0913 - one for each thing that is counted
        self,
        name: str,
        canonical: str,
        calls: int,
        *,
        errors: int | None = None,
        retries: int | None = None,
        timed: int = 0,
        seconds: float | None = None,
        slowest_seconds: float | None = None,
    ) -> None:
        self.name = name
        """As the agent calls it."""
        self.canonical = canonical
        self.calls, self.errors, self.retries = calls, errors, retries
        self.timed = timed
        """Of how many calls it is known how long they took."""
        self.seconds = seconds
        """How long those took together."""
        self.slowest_seconds = slowest_seconds


class Touched:
    """A file that was worked on."""

    __slots__ = ("path", "sessions", "times")

    def __init__(self, path: str, times: int, sessions: int | None = None) -> None:
        self.path = path
        """Below its project's root where it lies there, else the whole path."""
        self.times, self.sessions = times, sessions


class Basis:
    """What the figures of a report rest on."""

    __slots__ = ("priced_at", "prices", "under_recorded", "unpriced", "zone")

    def __init__(
        self,
        zone: str,
        *,
        prices: str | None = None,
        priced_at: str | None = None,
        unpriced: Mapping[str, int] | None = None,
        under_recorded: Mapping[str, int] | None = None,
    ) -> None:
        self.zone = zone
        """The time zone in which days begin: `Europe/Berlin`, `UTC`."""
        self.prices = prices
        """Where the prices are from, as it is to be read: `genai-prices 0.2.1`; None where there are none."""
        self.priced_at = priced_at
        """The date of these prices, `2026-05-01`."""
        self.unpriced = dict(unpriced or {})
        """How many measured requests of which model have no price."""
        self.under_recorded = dict(under_recorded or {})
        """How many sessions of which agent are known to have recorded less than they spent."""


class Overview:
    """What is told of a period at once."""

    __slots__ = ("basis", "days", "files", "models", "projects", "since", "tools", "total", "until")

    def __init__(  # noqa: PLR0913 - one for each thing that is shown
        self,
        total: Line,
        basis: Basis,
        *,
        since: str | None = None,
        until: str | None = None,
        days: Sequence[Line] = (),
        models: Sequence[Line] = (),
        projects: Sequence[Line] = (),
        tools: Sequence[ToolFigures] = (),
        files: Sequence[Touched] = (),
    ) -> None:
        self.total = total
        """All of the period; `of` is not shown."""
        self.basis = basis
        self.since, self.until = since, until
        """The first and the last day of the period; None for the first and the last of `days`."""
        self.days = days
        """Those on which something happened, in any order, `of` a day as `2026-01-27`."""
        self.models, self.projects, self.tools, self.files = models, projects, tools, files
        """In any order. The largest are shown; of models and projects the rest as one, so all of those are wanted."""


class ReportRequest:
    """One request to a model, and how its price came about."""

    __slots__ = (
        "agent",
        "at",
        "estimated",
        "figures",
        "message",
        "model",
        "over",
        "parts",
        "picos",
        "session",
    )

    def __init__(  # noqa: PLR0913 - one for each thing that is known of it
        self,
        session: str,
        agent: str,
        figures: Mapping[str, int | None],
        *,
        message: str | None = None,
        model: str | None = None,
        at: datetime | None = None,
        estimated: bool = False,
        picos: int | None = None,
        parts: Sequence[tuple[str, int, int]] = (),
        over: int = 0,
    ) -> None:
        self.session = session
        """The key of the session it belongs to."""
        self.message = message
        """The id of the message that answers it."""
        self.agent, self.model = agent, model
        self.at = at
        """Aware; shown in the time zone it comes in."""
        self.figures = dict(figures)
        """By the names of `FIGURES`; None where nobody recorded one."""
        self.estimated = estimated
        self.picos = picos
        """What it cost; None where there is no price."""
        self.parts = parts
        """What was multiplied: a name, tokens, and picodollars a token, as in `("input", 7000, 1250000)`."""
        self.over = over
        """The size of prompt from which on these prices hold; 0 where they are those of all, or of smaller ones."""


def dollars(picos: int) -> Decimal:
    """Return money in dollars, to the last place."""
    from decimal import Decimal

    return Decimal(dollars_text(picos))


def dollars_text(picos: int, places: int = 0) -> str:
    """Return money in dollars with all its digits: at least so many places, and no zeros beyond them."""
    whole, rest = divmod(picos, PICOS)
    digits = f"{rest:0{_PLACES}d}".rstrip("0").ljust(places, "0")
    return f"{whole}.{digits}" if digits else str(whole)


def plus(one: int | None, other: int | None) -> int | None:
    """Add what is known."""
    return one if other is None else other if one is None else one + other


def summed(spends: Iterable[Spend]) -> Spend:
    """Return all of it."""
    return sum(spends, Spend())
