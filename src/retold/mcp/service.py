"""Where questions are answered: the archive, how much of it may be seen, and whether secrets stay in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec

from retold.archive.database import RetoldError
from retold.archive.index.reader import kept_index
from retold.archive.store import NAME, Store
from retold.mcp.reply import BadCursor, Reply, cursor_of, replied
from retold.mcp.tool import Arguments, Tool, ToolContext
from retold.projects.matching import is_meant
from retold.redaction import Redactor
from retold.search.access import EVERYTHING, AccessScope, project_reach
from retold.search.archive_pool import ArchivePool
from retold.search.listing import places
from retold.search.scan_job import ScanJob, Scanned
from retold.search.scan_pool import Scans

T = TypeVar("T")
_LOOKS = re.compile(r"\(\?(?:<?[=!]|\()")
"""Parts of a pattern that match by what is not told: by what stands, or does not stand, around."""
UNMADE = "there is no archive of conversations yet: the person at this machine makes one with `retold sync`"
PATIENCE = 2_000
"""Milliseconds for which a question waits for others who have locked the archive: an agent waits for it, too."""
_LEAVING = 0.3
"""Seconds for which those who read are waited for at the end."""
STOPPED = "The scan was ended before it had seen everything: a simpler pattern, or fewer conversations, may find more."
NARROW = "Only this project was looked at; the person at this machine opens the others with `retold connect AGENT --scope all`."


class ServerPlace(msgspec.Struct, frozen=True):
    """What the person who started the server allows."""

    folder: str
    """Of the archive."""
    here: str
    """Where the server was started."""
    is_all: bool = False
    is_redacted: bool = True
    named: str | None = None
    """How the shell calls the folder where the server was started."""


class QueryService:
    """Answers what agents ask. It can be asked by many at once."""

    def __init__(self, place: ServerPlace) -> None:
        self.place = place
        self._readers = ArchivePool(place.folder, PATIENCE)
        self._scans: Scans | None = None
        self._roots: WeakKeyDictionary[Store, tuple[int, list[str | None]]] = WeakKeyDictionary()

    def prepare(self) -> None:
        """Open the archive ahead of the first question."""
        self._readers.prepare(lambda record: (self.reach(record), kept_index(record, is_meant)))

    async def answered(self, tool: Tool, arguments: Arguments) -> Reply:
        """Return an answer; raises Refused with what to ask instead, Stopped where the archive cannot be read."""
        start = cursor_of(arguments.cursor)
        job = tool.scan(arguments)
        scanned = None if job is None else await self._scanned(job)

        def ask(record: Store) -> Reply:
            asking = self.asking(record, start.passage, scanned)
            reply = replied(tool.answer(asking, arguments), start, arguments.budget, asking.clean)
            return msgspec.structs.replace(reply, note=_note(asking, reply))

        return await self.asked(ask)

    async def asked(self, ask: Callable[[Store], T]) -> T:
        """Return what somebody asks of the archive."""
        try:
            return await self._readers.asked(ask)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise BadCursor(UNMADE) from error
        except OSError as error:
            raise RetoldError(f"{os.path.join(self.place.folder, NAME)}: {error.strerror}") from error

    async def _scanned(self, job: ScanJob) -> Scanned:
        if job.is_regex and self.place.is_redacted and _LOOKS.search(job.text):
            raise BadCursor(
                "a pattern that looks ahead or behind could tell secrets: write one without (?=, (?!, (?<"
            )
        reach = await self.asked(self.reach)
        if self._scans is None:
            self._scans = Scans(self.place.folder)
        told = msgspec.structs.replace(job, reach=reach, is_redacted=self.place.is_redacted)
        scanned = await self._scans.scanned(told, _never)
        if scanned.end == "unclear":
            raise BadCursor(scanned.message)
        if scanned.end in ("busy", "broken"):
            raise BadCursor("the scan could not be made now: try again, or look for words instead")
        return scanned

    def asking(self, record: Store, first: int = 0, scanned: Scanned | None = None) -> ToolContext:
        """Return what a question is answered from."""
        return ToolContext(record, self.reach(record), self.cleaner(), self.redactors, first, scanned)

    def reach(self, record: Store) -> AccessScope:
        """Return how far a question sees: as far as the server was told at its start, whatever it asks for."""
        if self.place.is_all:
            return EVERYTHING
        return project_reach(
            self._known_roots(record), self.place.here, os.path.expanduser("~"), self.place.named
        )

    def _known_roots(self, record: Store) -> list[str | None]:
        """Return where conversations took place; they are looked up anew only when others have written."""
        version, roots = self._roots.get(record, (-1, []))
        if version != (now := record.version()):
            roots = [place.root for place in places(record)]
            self._roots[record] = (now, roots)
        return roots

    def cleaner(self) -> Callable[[str], str]:
        """Return what takes secrets out of the texts of one answer, each by the same name wherever it stands."""
        return str if self.redactors is None else self.redactors().redacted_text

    @property
    def redactors(self) -> Callable[[], Redactor] | None:
        """What makes redactors; None where secrets may stay."""
        home = os.path.expanduser("~")
        return partial(Redactor, home=home) if self.place.is_redacted else None

    def close(self) -> bool:
        """Let go of the archive, whatever is still being asked; tell whether nobody is at it any more."""
        return self._readers.leave(_LEAVING)


def _note(asking: ToolContext, reply: Reply) -> str:
    """Return what has to be known of an answer besides what it says."""
    if asking.scanned is not None and asking.scanned.end == "stopped":
        return STOPPED
    narrow = [NARROW] if asking.reach.folders and not reply.passages else []
    return " ".join([*asking.notes, *narrow])


async def _never() -> bool:
    return False
