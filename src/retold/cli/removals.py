"""What was taken out of an export, as it is told when it is written."""

from __future__ import annotations

from retold.export.files import report_lines, report_sentence, to_file

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from retold.cli.console import Console
    from retold.redaction.redactor import Removal


def tell_removals(removals: Sequence[Removal] | None, path: str | None, console: Console) -> None:
    """Say what was taken out, or that nothing was looked for; all of it goes to a file, where one is named."""
    if removals is None:
        console.tell("retold: nothing was taken out: secrets in it are there for whoever reads it")
        return
    console.tell(f"retold: {report_sentence(removals)}")
    if path is not None:
        to_file(path, report_lines(removals))
