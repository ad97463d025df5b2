"""The values of reports: tokens, money and work by day, model, project or another key.

Plain classes: a report does without the libraries that reading needs.
"""

from __future__ import annotations

from retold.model import FIGURES

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from decimal import Decimal

_PLACES = 12
PICOS = 10**_PLACES
"""Picodollars in a dollar: a price per million tokens is a whole number of them per token."""


class Spend:
    """The tokens and the cost of some requests, each counted once."""

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
        """By the names of `FIGURES`; None if no request recorded one."""
        self.picos = picos
        """The cost of the requests with a price; None if none has one."""
        self.unpriced = unpriced
        """The number of requests without a price."""

    def __add__(self, other: Spend) -> Spend:
        figures = {name: add_known(self.figures[name], other.figures[name]) for name in FIGURES}
        picos = add_known(self.picos, other.picos)
        return Spend(self.requests + other.requests, figures, picos, self.unpriced + other.unpriced)

    @property
    def cost(self) -> Decimal | None:
        """The cost in dollars."""
        return None if self.picos is None else to_dollars(self.picos)


class Line:
    """A line of a report: the sums for one key."""

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
        """The key: `2026-01-27`, `2026-W05`, `2026-01`, a model, a project's root, an agent, a tool, a session's key."""
        self.measured = measured
        self.estimated = estimated
        """Estimates for sessions without recorded tokens; they are never added to the measured sums."""
        self.sessions, self.prompts, self.compactions = sessions, prompts, compactions
        self.tool_calls, self.tool_errors, self.tool_retries = tool_calls, tool_errors, tool_retries
        self.active_seconds = active_seconds
        """None, like every other number here, if it cannot be counted by this kind of key."""


class ToolFigures:
    """The sums for one tool over all its calls."""

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
        """The agent's name of the tool."""
        self.canonical = canonical
        self.calls, self.errors, self.retries = calls, errors, retries
        self.timed = timed
        """The number of calls with a known duration."""
        self.seconds = seconds
        """The sum of the known durations."""
        self.slowest_seconds = slowest_seconds


class TouchedFile:
    """A file that tool calls worked on."""

    __slots__ = ("path", "sessions", "times")

    def __init__(self, path: str, times: int, sessions: int | None = None) -> None:
        self.path = path
        """The path below its project's root, or the whole path of a file elsewhere."""
        self.times, self.sessions = times, sessions


class Basis:
    """The sources and the limits of a report's figures."""

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
        """The time zone of the days: `Europe/Berlin`, `UTC`."""
        self.prices = prices
        """The name of the price list, for display: `genai-prices 0.2.1`; None if there is none."""
        self.priced_at = priced_at
        """The date of these prices, `2026-05-01`."""
        self.unpriced = dict(unpriced or {})
        """The number of measured requests without a price, by model."""
        self.under_recorded = dict(under_recorded or {})
        """The number of sessions that recorded less than they spent, by agent."""


class Overview:
    """The contents of an overview of a period."""

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
        files: Sequence[TouchedFile] = (),
    ) -> None:
        self.total = total
        """The sums of the whole period; `of` is not shown."""
        self.basis = basis
        self.since, self.until = since, until
        """The first and the last day of the period; None for the first and the last of `days`."""
        self.days = days
        """The days with activity, in any order; `of` is a day as `2026-01-27`."""
        self.models, self.projects, self.tools, self.files = models, projects, tools, files
        """All lines in any order. The largest are shown; the rest of models and projects is added up."""


class ReportRequest:
    """One request to a model with its price."""

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
        """The key of its session."""
        self.message = message
        """The id of its answer."""
        self.agent, self.model = agent, model
        self.at = at
        """An aware time, which is shown in its own zone."""
        self.figures = dict(figures)
        """By the names of `FIGURES`; None if not recorded."""
        self.estimated = estimated
        self.picos = picos
        """Its cost; None if there is no price."""
        self.parts = parts
        """The terms of the cost: a name, tokens, and picodollars per token, as in `("input", 7000, 1250000)`."""
        self.over = over
        """The prompt size above which these prices hold; 0 for the prices of small prompts."""


def to_dollars(picos: int) -> Decimal:
    """Return picodollars in dollars, exactly."""
    from decimal import Decimal

    return Decimal(format_dollars(picos))


def format_dollars(picos: int, places: int = 0) -> str:
    """Return picodollars as dollars with all their digits, and at least `places` of them."""
    whole, rest = divmod(picos, PICOS)
    digits = f"{rest:0{_PLACES}d}".rstrip("0").ljust(places, "0")
    return f"{whole}.{digits}" if digits else str(whole)


def add_known(one: int | None, other: int | None) -> int | None:
    """Return the sum of the known numbers; None if both are unknown."""
    return one if other is None else other if one is None else one + other


def sum_spends(spends: Iterable[Spend]) -> Spend:
    """Return the sum of spends."""
    return sum(spends, Spend())
