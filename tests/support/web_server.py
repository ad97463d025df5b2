"""Runs the real web server in a thread on a loopback port, and sends requests to it."""

import http.client
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import urlencode

from retold.web.pages import PAGES
from retold.web.server import PageAddress, WebServer
from retold.web.templating import PageRoute

PATIENCE = 60


class PageResponse(NamedTuple):
    """A response of the server."""

    status: int
    headers: Mapping[str, str]
    text: str


class Visit:
    """A client of the server, with or without a login cookie."""

    def __init__(self, web: WebServer) -> None:
        self.web = web
        self.cookie: str | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.web.port}"

    def enter(self) -> PageResponse:
        """Log in with a new link and keep the cookie."""
        answered = self.get(self.web.create_link().split(self.host)[1])
        self.cookie = answered.headers["set-cookie"].partition(";")[0]
        return answered

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> PageResponse:
        return self.ask("GET", path, headers)

    def post(
        self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> PageResponse:
        """Send a form with the headers that the site's own pages send."""
        given = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}"}
        return self.ask("POST", path, given | dict(headers or {}), urlencode(fields).encode())

    def form_token(self) -> str:
        """Return the token that every form of a page carries."""
        return self.get("/").text.partition('data-token="')[2].partition('"')[0]

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> PageResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=PATIENCE)
        given = ({"Cookie": self.cookie} if self.cookie else {}) | dict(headers or {})
        with closing(connection):
            # A browser does not send the fragment.
            connection.request(method, path.partition("#")[0], body, given)
            response = connection.getresponse()
            text = response.read().decode()
        return PageResponse(
            response.status, {name.lower(): value for name, value in response.getheaders()}, text
        )


@contextmanager
def run_web_server(folder: str, pages: Sequence[PageRoute] = PAGES, **place: object) -> Iterator[Visit]:
    """Serve an archive until the block ends."""
    web, has_begun = WebServer(PageAddress(folder, **place), pages), Event()  # type: ignore[arg-type]
    thread = Thread(target=web.run, args=(has_begun.set,), daemon=True)
    thread.start()
    assert has_begun.wait(PATIENCE)
    try:
        yield Visit(web)
    finally:
        web.end()
        thread.join(PATIENCE)
        assert not thread.is_alive()
