"""What the list shows: what was typed, answered by names at once and by the text a moment later."""

import asyncio
from collections.abc import Sequence

from retold.archive.database import IndexDamagedError, RetoldError
from retold.search.listing import Scope, scopes
from retold.search.query import QuerySyntaxError
from retold.search.quick_find import Named, SessionCard, TitleMatch, by_name, joined
from retold.search.results import SearchResult
from retold.tui.answers import ArchiveQueries, found, is_plain, listed, unknown
from retold.tui.threads import answer

FIRST = 100
"""Conversations that are asked for first: a screen full, while the others come."""
PAUSE = 0.08
"""Seconds without a key after which the text is searched."""


class ListFinder:
    """All that is known, and what of it answers what was typed last."""

    def __init__(self, archive: ArchiveQueries) -> None:
        self.archive = archive
        self.scopes: Sequence[Scope] = scopes((), archive.here)
        self.scope = self.scopes[0]
        self.typed = ""
        self.note = ""
        """What there is to say about what was typed."""
        self.is_searching = False
        self._known: list[Named] = []
        self._cards: dict[str, SessionCard] = {}
        self._said: list[SearchResult] = []
        self._named: tuple[list[TitleMatch], list[TitleMatch]] = ([], [])

    async def load(self, limit: int | None = None) -> None:
        """Learn which conversations there are in the scope."""
        scope = self.scope
        self._known = await answer(lambda: listed(self.archive, scope, limit))
        self._cards = {one.card.key: one.card for one in self._known}
        self._find_names()
        if scope.folder is None:
            self.scopes = scopes({one.card.project.root for one in self._known}, self.archive.here)

    def turn_scope(self) -> None:
        """Take the next scope."""
        names = [scope.name for scope in self.scopes]
        place = names.index(self.scope.name) if self.scope.name in names else -1
        self.scope = self.scopes[(place + 1) % len(self.scopes)]

    def type(self, typed: str) -> None:
        """Take what was typed; answers to what was typed before are void."""
        self.typed, self.note, self._said = typed.strip(), "", []
        self.is_searching = bool(self.typed)
        self._find_names()

    def _find_names(self) -> None:
        is_by_name = not self.typed or is_plain(self.typed)
        self._named = by_name(self._known, self.typed) if is_by_name else ([], [])

    async def search(self) -> None:
        """Search the text, if nobody types on."""
        typed, scope = self.typed, self.scope
        if not typed:
            return
        await asyncio.sleep(PAUSE)
        try:
            said = await answer(lambda: found(self.archive, scope, typed))
        except QuerySyntaxError as unclear:
            said, self.note = [], unclear.message
        except IndexDamagedError:
            said, self.note = [], "the text index is damaged: `retold sync --reindex` makes it anew"
        except (RetoldError, OSError, ValueError) as error:
            said, self.note = [], str(error)
        if not said and not self.note:
            self.note = await answer(lambda: unknown(self.archive, typed))
        if (typed, scope) == (self.typed, self.scope):
            self._said, self.is_searching = said, False

    @property
    def total(self) -> int:
        """How many conversations there are."""
        return len(self._known)

    def matches(self) -> list[TitleMatch]:
        """Return what answers, the best first."""
        return joined(self._named, self._said, self._cards)
