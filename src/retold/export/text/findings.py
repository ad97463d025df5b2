"""Findings of the doctor, for people and for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from retold.model.problem import Finding, Severity

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
    "unread-file": "{} files could not be read, because of a bug of retold or of damage in the archive",
    "unreadable": "{} files or folders cannot be opened",
}
"""What is told of several findings of a kind at once; of other kinds each is told."""
THREATS = ("deletion", "ghost-twin", "nothing-to-resume", "subagent-sibling", "unloadable")
"""What the agents are going to do to sessions that are still there."""
_DAY = 86_400


class Gathered(msgspec.Struct, frozen=True):
    """Findings of a kind in a home, the worst first."""

    home: str | None
    text: str
    findings: tuple[Finding, ...]

    @property
    def code(self) -> str:
        """Their kind."""
        return self.findings[0].code

    @property
    def severity(self) -> Severity:
        """Of the worst."""
        return self.findings[0].severity

    @property
    def fixes(self) -> tuple[str, ...]:
        """The commands that mend them, each once."""
        return tuple(dict.fromkeys(one.fix for one in self.findings if one.fix is not None))


def gathered(findings: Sequence[Finding], now: datetime) -> Iterator[Gathered]:
    """Yield all findings by home, first what is not about a home; within a home they stay in their order."""
    homes = dict.fromkeys([None, *(finding.home for finding in findings)])
    for home in homes:
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            if finding.home == home:
                alone = "" if finding.code in _SUMS else finding.text
                groups.setdefault((finding.code, alone), []).append(finding)
        for same in groups.values():
            yield Gathered(home, same[0].text if len(same) == 1 else _sum(same, now), tuple(same))


def _sum(same: Sequence[Finding], now: datetime) -> str:
    """Return what is true of several findings of a kind."""
    code = same[0].code
    if code not in _SUMS:
        return same[0].text
    text = _SUMS[code].format(f"{len(same):,}", _within(same, now))
    if code not in THREATS:
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
