"""An export as it is carried out: conversation by conversation, without secrets, to wherever it goes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import msgspec

from retold.archive.database import DamagedError, RetoldError
from retold.cli.console import STDOUT, to_stdout
from retold.cli.progress import Progress
from retold.export.files import file_name, report_lines, report_sentence, to_file
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.export.load import changed, cut_session, gathered, sessions_of
from retold.redaction import Redactor

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.model.session import Session
    from retold.redaction.redactor import Removal


def tell_removals(removals: Sequence[Removal] | None, path: str | None, console: Console) -> None:
    """Say what was taken out, or that nothing was looked for; all of it goes to a file, where one is named."""
    if removals is None:
        console.tell("retold: nothing was taken out: secrets in it are there for whoever reads it")
        return
    console.tell(f"retold: {report_sentence(removals)}")
    if path is not None:
        to_file(path, report_lines(removals))


INDEX = "index.html"


class ExportRun:
    """One run of the command."""

    def __init__(self, record: Store, options: Namespace, console: Console) -> None:
        self._record, self._options, self._console = record, options, console
        self._format = FORMATS[options.format]
        self._redactor = None
        if not options.no_redact:
            self._redactor = Redactor(keep_attachments=options.images, home=os.path.expanduser("~"))
        self._choice = ExportOptions(
            thoughts=options.thoughts,
            tools=options.tools,
            tokens=options.tokens,
            notices=options.notices,
            is_redacted=not options.no_redact,
            templates=None if options.templates is None else Path(options.templates),
        )
        self._failures: dict[str, Exception] = {}
        """The sessions that cannot be read, and why."""

    def run(self, keys: Sequence[str]) -> int:
        """Write them; 2 if it is not clear where to, 4 if one is damaged: the others are written."""
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
            tell_removals(removals, self._options.report, self._console)
        return code or self._failure_code()

    def _failure_code(self) -> int:
        """Return 4 if a session is damaged; raises an internal error after all others are written."""
        for error in self._failures.values():
            if not isinstance(error, DamagedError):
                raise error
        from retold.cli.main import EXIT_MACHINE

        return EXIT_MACHINE if self._failures else 0

    def _to_stdout(self, keys: Sequence[str]) -> int:
        if len(keys) > 1 and not self._format.holds_many:
            self._console.tell(f"retold: {len(keys):,} conversations: name a folder with -o, for a file each")
            return 2
        if self._format.is_binary and self._console.out.isatty():
            self._console.tell("retold: this format is not for terminals: name a file with -o")
            return 2
        to_stdout(self._pieces(self._tellings(keys)), self._console)
        return 0

    def _to_folder(self, folder: str, keys: Sequence[str]) -> int:
        """Write a file for each conversation, and where the format has one, an index."""
        if os.path.exists(folder) and not os.path.isdir(folder):
            self._console.tell(
                f"retold: {folder}: a file, and a folder is needed for {len(keys):,} conversations"
            )
            return 2
        written: dict[str, Session] = {}
        for telling in self._tellings(keys):
            name = file_name(telling.session, self._format.suffix, written)
            to_file(os.path.join(folder, name), self._pieces(iter((telling,))))
            written[name] = msgspec.structs.replace(telling.session, timeline=())
        index = self._format.index()
        if index is not None and len(written) > 1:
            to_file(os.path.join(folder, INDEX), index(written.items(), self._choice))
        self._console.tell(f"retold: {len(written):,} file{'' if len(written) == 1 else 's'} in {folder}")
        return 0

    def _to_file(self, path: str, keys: Sequence[str]) -> int:
        size = to_file(path, self._pieces(self._tellings(keys)))
        self._console.tell(f"retold: {path}: {size:,} bytes")
        return 0

    def _pieces(self, tellings: Iterator[ExportSession]) -> Iterator[bytes]:
        return self._format.pieces()(tellings, self._choice)

    def _tellings(self, keys: Sequence[str]) -> Iterator[ExportSession]:
        """Yield the conversations; how far it is, is told on a terminal."""
        progress = Progress(self._console, is_of_bytes=False)
        rounds = 1 if self._redactor is None or len(keys) == 1 else 2
        if rounds > 1:
            # What only a later one gives away must not stand in an earlier one.
            for place, telling in enumerate(self._gathered(keys)):
                progress.show(place + 1, rounds * len(keys))
                self._learn(telling)
        for place, telling in enumerate(self._gathered(keys)):
            if len(keys) > 1:
                progress.show((rounds - 1) * len(keys) + place + 1, rounds * len(keys))
            if rounds == 1:
                self._learn(telling)
            yield self._without_secrets(telling)
        progress.end()

    def _gathered(self, keys: Sequence[str]) -> Iterator[ExportSession]:
        fail = self._fail if len(keys) > 1 else None
        for key in keys:
            if key in self._failures:
                continue
            telling = gathered(self._record, key, self._options.view, fail=fail)
            if telling is not None:
                chosen = self._options.messages
                yield telling if chosen is None else cut_session(telling, *chosen)

    def _fail(self, key: str, error: Exception) -> None:
        """Leave a session out because of an error, and tell it once; raises what concerns the machine."""
        if isinstance(error, OSError | RetoldError) and not isinstance(error, DamagedError):
            raise error
        if key not in self._failures:
            told = str(error) if isinstance(error, DamagedError) else f"{type(error).__name__}: {error}"
            self._console.tell(f"retold: {key} is left out: {told}")
            self._failures[key] = error

    def _learn(self, telling: ExportSession) -> None:
        if self._redactor is not None:
            for session in sessions_of(telling):
                self._redactor.learn(session)

    def _without_secrets(self, telling: ExportSession) -> ExportSession:
        if self._redactor is None:
            return telling
        return changed(telling, partial(self._redactor.redacted, is_learned=True))
