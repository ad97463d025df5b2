"""`retold doctor`: findings about sessions at risk, lost sessions and the archive, each with a command that helps."""

from __future__ import annotations

import os

from retold.cli.main import EXIT_MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.doctor.survey import Survey


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `doctor`."""
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")
    parser.add_argument(
        "--full",
        action="store_true",
        help="examine the whole archive, not a part of it that changes every day",
    )


def run(options: Namespace, console: Console) -> int:
    """Print the findings; 1 if something is at risk, 4 if the archive is damaged or cannot be used."""
    from retold.cli.progress import warn_of_unknown_settings
    from retold.export.text.findings import finding_json, format_findings
    from retold.maintenance.doctor.checks import DAMAGE, run_checks
    from retold.maintenance.doctor.survey import make_survey

    seen = make_survey(os.environ, is_full=options.full)
    warn_of_unknown_settings(console, seen.folder, seen.config)
    found = list(run_checks(seen))
    if options.json:
        for finding in found:
            console.write_json(finding_json(finding))
    else:
        for pieces in format_findings(found, seen.now, console.columns):
            console.write_styled(pieces)
        if not any(finding.is_risk for finding in found):
            console.write_line(_summary(seen))
    if seen.record is not None:
        seen.record.connection.close()
    if any(finding.code in DAMAGE for finding in found):
        return EXIT_MACHINE
    return 1 if any(finding.is_risk for finding in found) else 0


def _summary(seen: Survey) -> str:
    """Return the line that is printed if nothing is at risk."""
    from retold.maintenance.doctor.survey import disk_usage

    found = disk_usage(seen.folder)
    count = seen.conversations
    sessions = f"{count:,} session{'' if count == 1 else 's'}"
    return f"Nothing is at risk: {sessions} archived, {found.size / 1e6:,.1f} MB; {found.free / 1e9:,.0f} GB are free."
