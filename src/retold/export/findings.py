"""Findings of the doctor, for people and for programs."""

from __future__ import annotations

import json
import textwrap

from retold.export.sums import gathered

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from retold.export.sums import Gathered
    from retold.model.problem import Finding

MARKS = {"loss": ("bad", "!"), "warning": ("match", "*"), "note": ("faint", "-")}
"""How bad something is, also without colour."""
_NARROWEST = 40
Pieces = list[tuple[str, str]]


def finding_json(finding: Finding) -> bytes:
    """Return a finding as one JSON object."""
    told = {
        "finding": finding.code,
        "severity": finding.severity,
        "home": finding.home,
        "session": finding.session,
        "when": _iso(finding.at),
        "text": finding.text,
        "fix": finding.fix,
    }
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def finding_lines(findings: Sequence[Finding], now: datetime, columns: int) -> Iterator[Pieces]:
    """Yield the lines of all findings, by home, in pieces with their styles; first what is not about a home."""
    width = max(columns, _NARROWEST)
    home: str | None = None
    for same in gathered(findings, now):
        if same.home != home and same.home is not None:
            yield [("title", same.home)]
        home = same.home
        yield from _told(same, width)


def _told(same: Gathered, width: int) -> Iterator[Pieces]:
    style, mark = MARKS[same.severity]
    for number, line in enumerate(textwrap.wrap(" ".join(same.text.split()), width - 4) or [""]):
        yield [(style, f"  {mark} " if number == 0 else "    "), ("plain", line)]
    if same.fixes:
        yield [("plain", "      "), ("tool", same.fixes[0])]
    if len(same.fixes) > 1:
        yield [("faint", f"      and {len(same.fixes) - 1:,} more: retold doctor --json")]
