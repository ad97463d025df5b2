"""Export of conversations as a dataset of tables: a folder in which only what changed is written."""

from __future__ import annotations

import os
import sys

from retold import __version__
from retold.cli.console import STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console


DATASETS = {
    "parquet": "a folder of tables, for DuckDB, Polars, pandas and Spark; the next time only what changed"
}
"""The formats that are datasets, each with its description."""


def find_conflict(options: Namespace) -> str | None:
    """Return why the options do not fit a dataset, or None."""
    if options.output in (None, STDOUT):
        return "a dataset is a folder: name one with -o"
    if options.messages is not None or options.view != "full":
        return "a dataset holds whole sessions: --messages and --view are not for it"
    if options.tools != "full" or options.templates is not None:
        return "a dataset has all columns: --tools and --templates do not apply to it"
    return None


def is_dataset(folder: str) -> bool:
    """Return whether the folder holds a dataset, perhaps an empty one."""
    from retold.lake.dataset_files import MANIFEST_NAME

    return os.path.isfile(os.path.join(folder, MANIFEST_NAME))


class _ImportBlocker:
    """A finder of modules that refuses numpy and pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ImportError for what is refused; None leaves the rest to other finders."""
        del path, target
        if name in ("numpy", "pandas"):
            raise ModuleNotFoundError(f"no {name} for tables", name=name)


def _import_arrow() -> None:
    """Import Arrow without numpy and pandas. It would take 0.3 s to import them, and tables need neither.

    Arrow asks for numpy when it is imported, and for pandas with its first array. Each time it asks once only.
    """
    if "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _ImportBlocker)
        try:
            import pyarrow as pa

            pa.array(())
        finally:
            sys.meta_path.remove(_ImportBlocker)


def export_dataset(record: Store, keys: Sequence[str], options: Namespace, console: Console) -> int:
    """Bring the dataset up to date; return 2 if the folder holds something else."""
    _import_arrow()
    from retold.cli.export_files import report_removals
    from retold.cli.progress import Progress
    from retold.lake.dataset import Dataset
    from retold.lake.dataset_files import DatasetFolder, NotADatasetError
    from retold.lake.dataset_items import DatasetOptions
    from retold.redaction import Redactor

    redactor = None
    if not options.no_redact:
        redactor = Redactor(keep_attachments=options.images, home=os.path.expanduser("~"))
    choice = DatasetOptions(frozenset(keys), frozenset(_agents_of_refused_files(options)))
    progress = Progress(console, is_of_bytes=False)
    try:
        dataset = Dataset(record, choice, redactor, __version__)
        with DatasetFolder(options.output) as folder:
            outcome = dataset.write(folder, progress.show, is_full=options.report is not None)
    except NotADatasetError as error:
        console.notice(f"retold: {error}")
        return 2
    progress.end()
    counts = f"{outcome.written:,} written, {outcome.unchanged:,} unchanged, {outcome.removed:,} removed"
    console.notice(f"retold: {options.output}: sessions: {counts}")
    has_secrets = options.no_redact and outcome.unchanged > 0
    if options.report or outcome.written or has_secrets:
        report_removals(None if options.no_redact else outcome.removals, options.report, console)
    return 0


def _agents_of_refused_files(options: Namespace) -> tuple[str, ...]:
    """Return the agents of which everything is exported; their files without a session become problems in the tables."""
    from retold.agents import NAMES
    from retold.search.filters import FILTERS

    given = {name for name in FILTERS if getattr(options, name) is not None}
    if options.sessions or given - {"agent"}:
        return ()
    return (options.agent,) if given else tuple(NAMES)
