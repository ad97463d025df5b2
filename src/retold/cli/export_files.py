"""Export of conversations to stdout, a file, or a folder, one by one and redacted."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import msgspec

from retold.archive.database import DamagedError, RetoldError
from retold.cli.console import STDOUT, write_to_stdout
from retold.cli.progress import Progress
from retold.export.files import file_name, format_removals, removals_json, write_file
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.export.load import load_export, map_sessions, select_entries, sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.model.session import Session
    from retold.redaction import Redactor, Removal


def report_removals(removals: Sequence[Removal] | None, path: str | None, console: Console) -> None:
    """Print how much was redacted, or that redaction is off; write the full report to `path`."""
    if removals is None:
        console.notice("retold: not redacted: any secrets are still in the output")
        return
    console.notice(f"retold: {format_removals(removals)}")
    if path is not None:
        write_file(path, removals_json(removals))


INDEX = "index.html"


class ExportRun:
    """One run of `retold export` to files."""

    def __init__(self, record: Store, options: Namespace, console: Console) -> None:
        self._record, self._options, self._console = record, options, console
        self._format = FORMATS[options.format]
        self._redactor: Redactor | None = None
        if not options.no_redact:
            from retold.redaction import Redactor

            self._redactor = Redactor(keep_attachments=options.images, home=os.path.expanduser("~"))
        self._export_options = ExportOptions(
            thoughts=options.thoughts,
            tools=options.tools,
            tokens=options.tokens,
            notices=options.notices,
            is_redacted=not options.no_redact,
            templates=None if options.templates is None else Path(options.templates),
        )
        self._failures: dict[str, Exception] = {}
        """The errors of sessions that cannot be read, by key."""

    def run(self, keys: Sequence[str]) -> int:
        """Export sessions; return 2 if the target does not fit, 4 if a session is damaged. All others are written."""
        path = self._options.output
        is_folder = path is not None and (path.endswith(("/", os.sep)) or os.path.isdir(path))
        if path in (None, STDOUT):
            code = self._to_stdout(keys)
        elif (self._format.holds_many or len(keys) == 1) and not is_folder:
            code = self._to_file(path, keys)
        else:
            code = self._to_folder(path, keys)
        if code == 0:
            removals = None if self._redactor is None else self._redactor.report()
            report_removals(removals, self._options.report, self._console)
        return code or self._failure_code()

    def _failure_code(self) -> int:
        """Return 4 if a session is damaged; raise a bug's exception, now that all other sessions are written."""
        for error in self._failures.values():
            if not isinstance(error, DamagedError):
                raise error
        from retold.cli.main import EXIT_MACHINE

        return EXIT_MACHINE if self._failures else 0

    def _to_stdout(self, keys: Sequence[str]) -> int:
        if len(keys) > 1 and not self._format.holds_many:
            self._console.notice(
                f"retold: {len(keys):,} conversations: name a folder with -o, for a file each"
            )
            return 2
        if self._format.is_binary and self._console.out.isatty():
            self._console.notice("retold: this format is not for terminals: name a file with -o")
            return 2
        write_to_stdout(self._pieces(self._load(keys)), self._console)
        return 0

    def _to_folder(self, folder: str, keys: Sequence[str]) -> int:
        """Write a file for each conversation, and an index if the format has one."""
        if os.path.exists(folder) and not os.path.isdir(folder):
            self._console.notice(
                f"retold: {folder}: a file, and a folder is needed for {len(keys):,} conversations"
            )
            return 2
        written: dict[str, Session] = {}
        for loaded in self._load(keys):
            name = file_name(loaded.session, self._format.suffix, written)
            write_file(os.path.join(folder, name), self._pieces(iter((loaded,))))
            written[name] = msgspec.structs.replace(loaded.session, timeline=())
        index = self._format.encode_index(written.items(), self._export_options)
        if index is not None and len(written) > 1:
            write_file(os.path.join(folder, INDEX), index)
        self._console.notice(f"retold: {len(written):,} file{'' if len(written) == 1 else 's'} in {folder}")
        return 0

    def _to_file(self, path: str, keys: Sequence[str]) -> int:
        size = write_file(path, self._pieces(self._load(keys)))
        self._console.notice(f"retold: {path}: {size:,} bytes")
        return 0

    def _pieces(self, sessions: Iterator[ExportSession]) -> Iterator[bytes]:
        return self._format.encode(sessions, self._export_options)

    def _load(self, keys: Sequence[str]) -> Iterator[ExportSession]:
        """Yield the conversations, redacted."""
        progress = Progress(self._console, is_of_bytes=False)
        rounds = 1 if self._redactor is None or len(keys) == 1 else 2
        if rounds > 1:
            # A secret that only a later session gives away must not stay in an earlier one.
            for number, loaded in enumerate(self._load_raw(keys), start=1):
                progress.show(number, rounds * len(keys))
                self._learn(loaded)
        for number, loaded in enumerate(self._load_raw(keys), start=1):
            if len(keys) > 1:
                progress.show((rounds - 1) * len(keys) + number, rounds * len(keys))
            if rounds == 1:
                self._learn(loaded)
            yield self._redact(loaded)
        progress.end()

    def _load_raw(self, keys: Sequence[str]) -> Iterator[ExportSession]:
        fail = self._fail if len(keys) > 1 else None
        for key in keys:
            if key in self._failures:
                continue
            loaded = load_export(self._record, key, self._options.view, fail=fail)
            if loaded is not None:
                bounds = self._options.messages
                yield loaded if bounds is None else select_entries(loaded, *bounds)

    def _fail(self, key: str, error: Exception) -> None:
        """Leave a session out because of an error, and print it once; raise an error of the machine."""
        if isinstance(error, OSError | RetoldError) and not isinstance(error, DamagedError):
            raise error
        if key not in self._failures:
            reason = str(error) if isinstance(error, DamagedError) else f"{type(error).__name__}: {error}"
            self._console.notice(f"retold: {key} is left out: {reason}")
            self._failures[key] = error

    def _learn(self, loaded: ExportSession) -> None:
        if self._redactor is not None:
            for session in sessions_of(loaded):
                self._redactor.learn(session)

    def _redact(self, loaded: ExportSession) -> ExportSession:
        if self._redactor is None:
            return loaded
        return map_sessions(loaded, partial(self._redactor.redact, is_learned=True))
