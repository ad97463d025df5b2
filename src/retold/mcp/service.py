"""Answers agents' queries from the archive, within their scope and without secrets; errors as the protocol has them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import mcp_types as types
import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from retold.archive.database import IndexDamagedError, RetoldError
from retold.archive.index.reader import open_shared_index
from retold.archive.store import ARCHIVE_NAME, Store
from retold.mcp.reply import Reply, RequestError, build_reply, parse_cursor
from retold.mcp.tool import Tool, ToolArguments, ToolContext
from retold.projects.matching import matches_project
from retold.redaction import Redactor
from retold.search.access import EVERYTHING, AccessScope, resolve_project_scope
from retold.search.archive_pool import ArchivePool
from retold.search.listing import list_projects
from retold.search.scan_job import ScanJob, ScanResult
from retold.search.scan_pool import ScanPool

LogBug = Callable[[Exception], str]
"""Writes a bug to a log file and returns its path."""


class ErrorMiddleware:
    """Middleware that answers with errors of the protocol. A bug is reported by its type and log path only.

    The message of an unexpected exception may quote the archive, and the SDK would send it to the agent.
    """

    def __init__(self, log: LogBug) -> None:
        self._log = log

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a request on."""
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise  # an error of the protocol
        except EXPECTED_ERRORS as error:
            code = types.INTERNAL_ERROR if isinstance(error, RetoldError) else types.INVALID_PARAMS
            raise MCPError(code, error_text(error)) from error
        except Exception as error:
            text = f"this is a bug of retold's own ({type(error).__name__}); log: {self._log(error)}"
            if ctx.method != "tools/call":
                raise MCPError(types.INTERNAL_ERROR, text) from error
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


_LONGEST = 200
"""Characters of an argument that an error quotes."""
EXPECTED_ERRORS = (msgspec.ValidationError, RequestError, RetoldError)
"""Errors that are not bugs."""


def error_text(error: Exception) -> str:
    """Return an expected error as text for the agent."""
    if isinstance(error, msgspec.ValidationError):
        return f"these arguments are not understood: {str(error)[:_LONGEST]}"
    if isinstance(error, IndexDamagedError):
        return f"{error}: the person at this machine mends it with `retold sync --reindex`"
    return str(error)


T = TypeVar("T")
_LOOKAROUND = re.compile(r"\(\?(?:<?[=!]|\()")
"""Parts of a pattern that match by text around the match, which could reveal a secret."""
UNMADE = "there is no archive of conversations yet: the person at this machine makes one with `retold sync`"
PATIENCE = 2_000
"""Milliseconds that a query waits for a locked archive; an agent waits for it."""
_LEAVING = 0.3
"""Seconds that the end waits for running queries."""
STOPPED = "The scan was ended before it had seen everything: a simpler pattern, or fewer conversations, may find more."
NARROW = "Only this project was looked at; the person at this machine opens the others with `retold connect AGENT --scope all`."


class ServerSettings(msgspec.Struct, frozen=True):
    """Settings that the person who started the server chose."""

    folder: str
    """The folder of the archive."""
    here: str
    """The working folder of the server."""
    is_all: bool = False
    is_redacted: bool = True
    named: str | None = None
    """The working folder as the shell names it, with symbolic links."""


class QueryService:
    """Runs tools on the archive, several at a time."""

    def __init__(self, place: ServerSettings) -> None:
        self.place = place
        self._pool = ArchivePool(place.folder, PATIENCE)
        self._scans: ScanPool | None = None
        self._roots: WeakKeyDictionary[Store, tuple[int, list[str | None]]] = WeakKeyDictionary()

    def prepare(self) -> None:
        """Open the archive before the first query."""
        self._pool.prepare(lambda store: (self.scope(store), open_shared_index(store, matches_project)))

    async def answer(self, tool: Tool, arguments: ToolArguments) -> Reply:
        """Return the reply of a tool; raises `EXPECTED_ERRORS`."""
        start = parse_cursor(arguments.cursor)
        job = tool.scan(arguments)
        scan_result = None if job is None else await self._scan(job)

        def query(store: Store) -> Reply:
            context = self.make_context(store, start.passage, scan_result)
            reply = build_reply(tool.answer(context, arguments), start, arguments.budget, context.redact)
            return msgspec.structs.replace(reply, note=_note(context, reply))

        return await self.ask(query)

    async def ask(self, query: Callable[[Store], T]) -> T:
        """Return the result of a query, run in a thread with the archive open."""
        try:
            return await self._pool.run(query)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RequestError(UNMADE) from error
        except OSError as error:
            raise RetoldError(f"{os.path.join(self.place.folder, ARCHIVE_NAME)}: {error.strerror}") from error

    async def _scan(self, job: ScanJob) -> ScanResult:
        if job.is_regex and self.place.is_redacted and _LOOKAROUND.search(job.text):
            raise RequestError(
                "a pattern that looks ahead or behind could tell secrets: write one without (?=, (?!, (?<"
            )
        reach = await self.ask(self.scope)
        if self._scans is None:
            self._scans = ScanPool(self.place.folder)
        job = msgspec.structs.replace(job, scope=reach, is_redacted=self.place.is_redacted)
        result = await self._scans.run(job, _never)
        if result.end == "unclear":
            raise RequestError(result.message)
        if result.end in ("busy", "broken"):
            raise RequestError("the scan could not be made now: try again, or look for words instead")
        return result

    def make_context(
        self, store: Store, first: int = 0, scan_result: ScanResult | None = None
    ) -> ToolContext:
        """Return the context in which a tool answers."""
        return ToolContext(
            store, self.scope(store), self.make_redact(), self.make_redactor, first, scan_result
        )

    def scope(self, store: Store) -> AccessScope:
        """Return the sessions that a query may see; the settings alone decide it."""
        if self.place.is_all:
            return EVERYTHING
        return resolve_project_scope(
            self._known_roots(store), self.place.here, os.path.expanduser("~"), self.place.named
        )

    def _known_roots(self, store: Store) -> list[str | None]:
        """Return the roots of all projects, loaded again only after another process has written."""
        version, roots = self._roots.get(store, (-1, []))
        if version != (now := store.data_version()):
            roots = [place.root for place in list_projects(store)]
            self._roots[store] = (now, roots)
        return roots

    def make_redact(self) -> Callable[[str], str]:
        """Return a function that removes secrets from the texts of one reply, with the same placeholders in all."""
        return str if self.make_redactor is None else self.make_redactor().redact_text

    @property
    def make_redactor(self) -> Callable[[], Redactor] | None:
        """The function that makes redactors; None if secrets may stay."""
        home = os.path.expanduser("~")
        return partial(Redactor, home=home) if self.place.is_redacted else None

    def close(self) -> bool:
        """Close the archive; return whether no query is still running."""
        return self._pool.cancel(_LEAVING)


def _note(context: ToolContext, reply: Reply) -> str:
    """Return the notes of a reply: why it may be incomplete."""
    if context.scan_result is not None and context.scan_result.end == "stopped":
        return STOPPED
    narrow = [NARROW] if context.scope.folders and not reply.passages else []
    return " ".join([*context.notes, *narrow])


async def _never() -> bool:
    return False
