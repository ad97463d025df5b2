"""Findings of the doctor, for people and for programs."""

from __future__ import annotations

import json
import textwrap

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from retold.model.finding import Finding

MARKS = {"loss": ("bad", "!"), "warning": ("match", "*"), "note": ("faint", "-")}
"""How bad something is, also without colour."""
_SUMS = {
    "damaged-file": "{} files could be read only in part",
    "deletion": "{} sessions go {}",
    "ghost-twin": "{} sessions go at the next start, with files without conversation that resumes left beside them",
    "lone-outputs": "tool outputs of {} lost sessions",
    "lone-subagent": "{} subagents of sessions that are gone",
    "lost": "{} sessions are gone from the home; the archive has them",
    "nothing-to-resume": "{} sessions go at the next start, because nothing in them can be resumed",
    "prompts-only": "only the prompts are left of {} sessions",
    "refused-file": "{} files hold no conversation in a known form",
    "subagent-sibling": "{} sessions go at the next start, with subagents' files of the same short id",
    "unknown-records": "{} sessions hold records of unknown kinds, kept as they are",
    "unloadable": "{} files go at the next start, because the agent cannot load them",
    "unreadable": "{} files or folders cannot be opened",
}
"""What is told of several findings of a kind at once; of other kinds each is told."""
_KEPT = ("deletion", "ghost-twin", "nothing-to-resume", "subagent-sibling", "unloadable")
_NARROWEST = 40
_DAY = 86_400
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
    homes = dict.fromkeys([None, *(finding.home for finding in findings)])
    for home in homes:
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            if finding.home == home:
                alone = "" if finding.code in _SUMS else finding.text
                groups.setdefault((finding.code, alone), []).append(finding)
        if groups and home is not None:
            yield [("title", home)]
        for same in groups.values():
            yield from _told(same, now, width)


def _told(same: Sequence[Finding], now: datetime, width: int) -> Iterator[Pieces]:
    worst = same[0]
    style, mark = MARKS[worst.severity]
    text = worst.text if len(same) == 1 else _sum(same, now)
    for number, line in enumerate(textwrap.wrap(" ".join(text.split()), width - 4) or [""]):
        yield [(style, f"  {mark} " if number == 0 else "    "), ("plain", line)]
    fixes = list(dict.fromkeys(finding.fix for finding in same if finding.fix is not None))
    if fixes:
        yield [("plain", "      "), ("tool", fixes[0])]
    if len(fixes) > 1:
        yield [("faint", f"      and {len(fixes) - 1:,} more: retold doctor --json")]


def _sum(same: Sequence[Finding], now: datetime) -> str:
    """Return what is true of several findings of a kind."""
    code = same[0].code
    text = _SUMS[code].format(f"{len(same):,}", _within(same, now))
    if code not in _KEPT:
        return text
    lost = sum(finding.severity == "loss" for finding in same)
    if not lost:
        return f"{text}; they are archived"
    return f"{text}; {'none of them is' if lost == len(same) else f'{lost:,} {_are(lost)} NOT'} archived"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _within(same: Sequence[Finding], now: datetime) -> str:
    """Return in how many days the last of them is due."""
    last = max((finding.at for finding in same if finding.at is not None), default=now)
    days = -int(-(last - now).total_seconds() // _DAY)
    return "at the next start" if days <= 0 else f"within {days} day{'' if days == 1 else 's'}"
