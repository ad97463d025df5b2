"""`retold doctor`: what is at risk, what is lost, and the command that mends it."""

from __future__ import annotations

import os

from retold.cli.main import EXIT_MACHINE

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.doctor.survey import Survey


def arguments(parser: ArgumentParser) -> None:
    """Add what `doctor` understands."""
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")
    parser.add_argument(
        "--full",
        action="store_true",
        help="examine the whole archive, not a part of it that changes every day",
    )


def run(options: Namespace, console: Console) -> int:
    """Print what was found; 1 if something is at risk, 4 if the archive is damaged or cannot be used."""
    from retold.cli.progress import tell_unknown_settings
    from retold.export.text.findings import finding_json, finding_lines
    from retold.maintenance.doctor.checks import DAMAGE, checkup
    from retold.maintenance.doctor.survey import survey

    seen = survey(os.environ, is_full=options.full)
    tell_unknown_settings(console, seen.folder, seen.config)
    found = list(checkup(seen))
    if options.json:
        for finding in found:
            console.record(finding_json(finding))
    else:
        for pieces in finding_lines(found, seen.now, console.columns):
            console.pieces(pieces)
        if not any(finding.is_risk for finding in found):
            console.line(_well(seen))
    if seen.record is not None:
        seen.record.connection.close()
    if any(finding.code in DAMAGE for finding in found):
        return EXIT_MACHINE
    return 1 if any(finding.is_risk for finding in found) else 0


def _well(seen: Survey) -> str:
    """Return what is said where nothing is at risk."""
    from retold.maintenance.doctor.survey import room

    found = room(seen.folder)
    count = seen.conversations
    sessions = f"{count:,} session{'' if count == 1 else 's'}"
    return f"Nothing is at risk: {sessions} archived, {found.size / 1e6:,.1f} MB; {found.free / 1e9:,.0f} GB are free."
