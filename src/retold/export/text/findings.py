"""Findings of `doctor` as text and JSON, grouped by home and kind."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from retold.export.text.formatting import StyledLine, plural
from retold.model.problem import Finding, Severity

_SUMMARIES = {
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
"""Texts for several findings of a kind. Findings of other kinds are listed one by one."""
THREATS = ("deletion", "ghost-twin", "nothing-to-resume", "subagent-sibling", "unloadable")
"""Codes of sessions that still exist and that an agent is about to delete."""
_DAY = 86_400


class FindingGroup(msgspec.Struct, frozen=True):
    """Findings of one kind in one home, the worst first."""

    home: str | None
    text: str
    findings: tuple[Finding, ...]

    @property
    def code(self) -> str:
        """The code of the findings."""
        return self.findings[0].code

    @property
    def severity(self) -> Severity:
        """The severity of the worst finding."""
        return self.findings[0].severity

    @property
    def fixes(self) -> tuple[str, ...]:
        """The commands that fix them, each once."""
        return tuple(dict.fromkeys(one.fix for one in self.findings if one.fix is not None))


def group_findings(findings: Sequence[Finding], now: datetime) -> Iterator[FindingGroup]:
    """Yield groups by home, those without a home first. Within a home the findings keep their order."""
    homes = dict.fromkeys([None, *(finding.home for finding in findings)])
    for home in homes:
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            if finding.home == home:
                text = "" if finding.code in _SUMMARIES else finding.text
                groups.setdefault((finding.code, text), []).append(finding)
        for group in groups.values():
            yield FindingGroup(home, group[0].text if len(group) == 1 else _summary(group, now), tuple(group))


def _summary(group: Sequence[Finding], now: datetime) -> str:
    code = group[0].code
    if code not in _SUMMARIES:
        return group[0].text
    text = _SUMMARIES[code].format(f"{len(group):,}", _within(group, now))
    if code not in THREATS:
        return text
    lost = sum(finding.severity == "loss" for finding in group)
    if not lost:
        return f"{text}; they are archived"
    not_archived = "none of them is" if lost == len(group) else f"{lost:,} {'is' if lost == 1 else 'are'} NOT"
    return f"{text}; {not_archived} archived"


def _within(group: Sequence[Finding], now: datetime) -> str:
    """Return within how many days the last deletion is due."""
    last = max((finding.at for finding in group if finding.at is not None), default=now)
    days = -int(-(last - now).total_seconds() // _DAY)
    return "at the next start" if days <= 0 else f"within {plural(days, 'day')}"


MARKS = {"loss": ("bad", "!"), "warning": ("match", "*"), "note": ("faint", "-")}
"""Style and mark of each severity."""
_NARROWEST = 40


def finding_json(finding: Finding) -> bytes:
    """Return a finding as one JSON object."""
    fields = {
        "finding": finding.code,
        "severity": finding.severity,
        "home": finding.home,
        "session": finding.session,
        "when": finding.at and f"{finding.at:%Y-%m-%dT%H:%M:%S}.{finding.at.microsecond // 1000:03}Z",
        "text": finding.text,
        "fix": finding.fix,
    }
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")


def format_findings(findings: Sequence[Finding], now: datetime, columns: int) -> Iterator[StyledLine]:
    """Yield all findings by home, those without a home first."""
    width = max(columns, _NARROWEST)
    home: str | None = None
    for group in group_findings(findings, now):
        if group.home != home and group.home is not None:
            yield [("title", group.home)]
        home = group.home
        yield from _group_lines(group, width)


def _group_lines(group: FindingGroup, width: int) -> Iterator[StyledLine]:
    style, mark = MARKS[group.severity]
    for number, line in enumerate(textwrap.wrap(" ".join(group.text.split()), width - 4) or [""]):
        yield [(style, f"  {mark} " if number == 0 else "    "), ("plain", line)]
    if group.fixes:
        yield [("plain", "      "), ("tool", group.fixes[0])]
    if len(group.fixes) > 1:
        yield [("faint", f"      and {len(group.fixes) - 1:,} more: retold doctor --json")]
