"""Who may come in: whoever has a link that works once within a minute, or knows the token, gets a cookie."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from retold.server import Allowance

LASTS = 60.0
"""Seconds for which a link works."""
TRIES = (5, 5 / 60)
"""How often a token may be typed, by all together: at once, and a second."""
MOST = 64
"""As many links and visitors are remembered: the oldest are let go."""


class LoginTokens:
    """Hands out links and cookies, and knows them again; all of it is forgotten with the process."""

    def __init__(
        self, port: int, token: str | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.cookie = f"retold-{port}"
        """The cookie's name: browsers send cookies to every port of a machine, and several pages may be open."""
        self._token, self._now, self._lock = token, now, Lock()
        self._secret = secrets.token_bytes(32)
        self._links: OrderedDict[str, float] = OrderedDict()
        self._visitors: OrderedDict[str, None] = OrderedDict()
        self._tries = Allowance(*TRIES, now)

    @property
    def has_token(self) -> bool:
        """Whether a token can be typed."""
        return self._token is not None

    def link_key(self) -> str:
        """Return what a new link carries."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._links[key] = self._now() + LASTS
            while len(self._links) > MOST:
                self._links.popitem(last=False)
        return key

    def is_link(self, key: str | None) -> bool:
        """Tell whether a link works; it still does afterwards."""
        with self._lock:
            return key is not None and self._links.get(key, 0.0) >= self._now()

    def by_link(self, key: str) -> str | None:
        """Return a visitor's cookie for a link that still works; it does not work again."""
        with self._lock:
            until = self._links.pop(key, None)
        return self._admitted() if until is not None and self._now() <= until else None

    def may_try(self) -> bool:
        """Take one of the few tries that there are."""
        with self._lock:
            return self._tries.take()

    def by_token(self, typed: str) -> str | None:
        """Return a visitor's cookie for the token; not even its length can be told from the time that takes."""
        given, known = (self._digest(text) for text in (typed, self._token or ""))
        return self._admitted() if hmac.compare_digest(given, known) and self._token else None

    def _admitted(self) -> str:
        visitor = secrets.token_urlsafe(32)
        with self._lock:
            self._visitors[visitor] = None
            while len(self._visitors) > MOST:
                self._visitors.popitem(last=False)
        return visitor

    def knows(self, visitor: str | None) -> bool:
        """Tell whether somebody was let in."""
        with self._lock:
            return visitor is not None and visitor in self._visitors

    def form_token(self, visitor: str) -> str:
        """Return what a visitor's forms carry: whoever cannot read a page cannot send one of its forms."""
        return self._digest(visitor).hex()

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(errors="replace"), "sha256")

    def is_form_token(self, visitor: str, token: str | None) -> bool:
        """Tell whether a form is from a page that this visitor was shown."""
        return token is not None and hmac.compare_digest(
            self.form_token(visitor).encode(), token.encode(errors="replace")
        )
