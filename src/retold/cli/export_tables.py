"""An export as a dataset of tables: a folder that is brought up to date, not files that are written."""

from __future__ import annotations

import os

from retold import __version__
from retold.cli.console import STDOUT

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.lake.dataset import DatasetOutcome


DATASETS = {
    "parquet": "a folder of tables, for DuckDB, Polars, pandas and Spark; the next time only what changed"
}
"""Forms that are no files of conversations; for each, what it is."""


def unclear(options: Namespace) -> str | None:
    """Return what keeps a dataset from being written as it was asked for."""
    if options.output in (None, STDOUT):
        return "a dataset is a folder: name one with -o"
    if options.messages is not None or options.view != "full":
        return "a dataset holds whole sessions: --messages and --view are not for it"
    if options.tools != "full" or options.templates is not None:
        return "a dataset holds all columns, and whoever reads it chooses: --tools and --templates are not for it"
    return None


def is_dataset(folder: str) -> bool:
    """Tell whether a dataset is there already: nothing may be all that is left of it."""
    from retold.lake.dataset_files import NAME

    return os.path.isfile(os.path.join(folder, NAME))


def refused_agents(options: Namespace) -> tuple[str, ...]:
    """Return the agents of which everything is exported: files of theirs that hold no session are told of as well."""
    from retold.agents import NAMES
    from retold.search.filters import FILTERS

    given = {name for name in FILTERS if getattr(options, name) is not None}
    if options.sessions or given - {"agent"}:
        return ()
    return (options.agent,) if given else tuple(NAMES)


class DatasetExport:
    """One run of the command."""

    def __init__(self, record: Store, options: Namespace, console: Console) -> None:
        self._record, self._options, self._console = record, options, console

    def run(self, keys: Sequence[str], refused: Sequence[str]) -> int:
        """Bring the folder up to date; 2 where it is no place for that. `refused`: agents whose unread files are told of."""
        from retold.cli.progress import Progress
        from retold.lake.dataset import Dataset
        from retold.lake.dataset_files import Folder, NotOurs
        from retold.lake.dataset_items import DatasetOptions
        from retold.redaction import Redactor

        options, redactor = self._options, None
        if not options.no_redact:
            redactor = Redactor(keep_attachments=options.images, home=os.path.expanduser("~"))
        choice = DatasetOptions(frozenset(keys), frozenset(refused))
        progress = Progress(self._console, is_of_bytes=False)
        try:
            dataset = Dataset(self._record, choice, redactor, __version__)
            with Folder(options.output) as folder:
                outcome = dataset.write(folder, progress.show, is_anew=options.report is not None)
        except NotOurs as error:
            self._console.tell(f"retold: {error}")
            return 2
        progress.end()
        self._tell(outcome)
        return 0

    def _tell(self, outcome: DatasetOutcome) -> None:
        from retold.cli.export_files import tell_removals

        counts = f"{outcome.written:,} written, {outcome.unchanged:,} unchanged, {outcome.removed:,} removed"
        self._console.tell(f"retold: {self._options.output}: sessions: {counts}")
        has_secrets = self._options.no_redact and outcome.unchanged > 0
        if self._options.report or outcome.written or has_secrets:
            removals = None if self._options.no_redact else outcome.removals
            tell_removals(removals, self._options.report, self._console)
