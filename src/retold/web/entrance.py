"""Who may come in: whoever has a link that works once within a minute, or knows the token, gets a cookie."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

LASTS = 60.0
"""Seconds for which a link works."""
MOST = 64
"""As many links and visitors are remembered: the oldest are let go."""


class Entrance:
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

    def by_link(self, key: str) -> str | None:
        """Return a visitor's cookie for a link that still works; it does not work again."""
        with self._lock:
            until = self._links.pop(key, None)
        return self._admitted() if until is not None and self._now() <= until else None

    def by_token(self, typed: str) -> str | None:
        """Return a visitor's cookie for the token."""
        is_it = self._token is not None and hmac.compare_digest(self._token.encode(), typed.encode())
        return self._admitted() if is_it else None

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
        return hmac.digest(self._secret, visitor.encode(), "sha256").hex()

    def is_form_token(self, visitor: str, token: str | None) -> bool:
        """Tell whether a form is from a page that this visitor was shown."""
        return token is not None and hmac.compare_digest(self.form_token(visitor).encode(), token.encode())
