"""Other sites against the local page, in the browser of somebody who has it open: nothing is read, nothing changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page
from starlette.datastructures import Headers

from conftest import available
from retold.archive.store import Store
from retold.web.auth import Refusal, WebGuard
from retold.web.pages import PAGES
from retold.web.templating import Answer, PageRequest, Redirect, static_address
from retold.web.templating import PageRoute as WebPage
from support.chromium import OpenPage, start_chromium
from support.one_session import QUESTION, person_with_one_session
from support.web_page import visit_page
from support.web_server import Visit, run_web_server

REBOUND = "rebound.example"
ATTACK = """
async ([own, token, link]) => {
  const told = {};
  const outcome = async (name, tried) => {
    const slow = new Promise((done) => setTimeout(() => done("nothing"), 1500));
    try { told[name] = String(await Promise.race([tried(), slow])); } catch (error) { told[name] = "failed"; }
  };
  const loaded = (element, name) => new Promise((done) => {
    element.onload = () => done("loaded"); element.onerror = () => done("failed");
    Object.assign(element, name); document.body.append(element);
  });
  const text = async (answer) => (answer.type === "opaque" ? "opaque" : await answer.text());
  const form = new URLSearchParams({ token, what: "all" });
  await Promise.all([
    outcome("fetch", async () => text(await fetch(own + "/"))),
    outcome("fetch with cookies", async () => text(await fetch(own + "/", { credentials: "include" }))),
    outcome("fetch blindly", async () => text(await fetch(own + "/", { credentials: "include", mode: "no-cors" }))),
    outcome("fetch a file", async () => text(await fetch(own + "/static/0/base.js", { mode: "no-cors" }))),
    outcome("post", async () => text(await fetch(own + "/change", { method: "POST", body: form, credentials: "include" }))),
    outcome("post blindly", async () =>
      text(await fetch(own + "/change", { method: "POST", body: form, credentials: "include", mode: "no-cors" }))),
    outcome("beacon", async () => { navigator.sendBeacon(own + "/change", form); return "sent"; }),
    outcome("link", async () => text(await fetch(link, { credentials: "include", mode: "no-cors" }))),
    outcome("image", () => loaded(document.createElement("img"), { src: own + "/" })),
    outcome("icon", () => loaded(document.createElement("img"), { src: own + "/static/0/icon.svg" })),
    outcome("script", () => loaded(document.createElement("script"), { src: own + "/static/0/base.js" })),
    outcome("style", () => loaded(document.createElement("link"), { rel: "stylesheet", href: own + "/static/0/base.css" })),
    outcome("ahead", () => loaded(document.createElement("link"), { rel: "prefetch", href: link })),
    outcome("live", () => new Promise((done, fail) => {
      const live = new EventSource(own + "/live", { withCredentials: true });
      live.onopen = () => done("open"); live.onerror = () => { live.close(); fail(); };
    })),
    outcome("socket", () => new Promise((done, fail) => {
      const socket = new WebSocket(own.replace("http", "ws") + "/live");
      socket.onopen = () => done("open"); socket.onerror = fail;
    })),
    outcome("frame", async () => {
      const frame = document.createElement("iframe");
      await loaded(frame, { src: own + "/" });
      return frame.contentDocument ? frame.contentDocument.body.innerText : "closed";
    }),
    outcome("frame of the link", async () => {
      const frame = document.createElement("iframe");
      await loaded(frame, { src: link });
      return frame.contentDocument ? frame.contentDocument.body.innerText : "closed";
    }),
    outcome("form", async () => {
      const sent = document.createElement("form");
      document.body.append(Object.assign(document.createElement("iframe"), { name: "into" }));
      Object.assign(sent, { action: own + "/change", method: "post", target: "into" });
      sent.append(Object.assign(document.createElement("input"), { name: "token", value: token }));
      document.body.append(sent);
      sent.submit();
      await new Promise((done) => setTimeout(done, 700));
      return "sent";
    }),
  ]);
  return told;
}
"""
HARMLESS = {"failed", "nothing", "closed", "sent", "opaque"}


class Pass(NamedTuple):
    """A request that the guard has seen."""

    what: str
    is_known: bool
    is_let_in: bool


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with available(), start_chromium(f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1") as started:
        yield started


@pytest.fixture
def changes() -> list[str]:
    """The tokens of the forms that reached a page that changes something."""
    return []


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Pass]:
    """All that the guard has seen."""
    found: list[Pass] = []
    decided = WebGuard._refusal  # noqa: SLF001 - to look on

    def look(self: WebGuard, scope: Any, headers: Headers, visitor: str | None) -> Refusal | None:
        refusal = decided(self, scope, headers, visitor)
        if scope["path"] != static_address("icon.svg"):  # which the browser asks for when it finds the time
            found.append(Pass(f"{scope['method']} {scope['path']}", visitor is not None, refusal is None))
        return refusal

    monkeypatch.setattr(WebGuard, "_refusal", look)
    return found


@pytest.fixture
def visit(tmp_path: Path, changes: list[str], passes: list[Pass]) -> Iterator[Visit]:
    assert (changes, passes) == ([], [])

    def change(asked: PageRequest, _: Store) -> Answer:
        changes.append(asked.form["token"])
        return Redirect("/", {})

    pages = (*PAGES, WebPage("/change", change, is_post=True))
    with run_web_server(str(person_with_one_session(tmp_path).archive), pages) as visit:
        yield visit


@pytest.fixture
def other_port(tmp_path: Path) -> Iterator[int]:
    """The port of an attacker's page."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>Free kittens</title><p>Kittens")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def lured(seen: OpenPage, site: str) -> Iterator[Page]:
    """Have the visitor open an attacker's page in another tab; requests to elsewhere are let through."""
    seen.page.context.unroute_all()
    page = seen.page.context.new_page()
    page.goto(site)
    yield page
    page.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_another_site_reads_nothing_and_changes_nothing(  # noqa: PLR0913 - fixtures
    browser: Browser, visit: Visit, passes: list[Pass], changes: list[str], other_port: int, name: str
) -> None:
    own = f"http://{visit.host}"
    with visit_page(browser, visit) as seen:
        token = seen.page.locator("body").get_attribute("data-token")
        seen.page.goto("about:blank")  # our own page would go on asking for news
        link = visit.web.create_link()
        passes.clear()
        with lured(seen, f"http://{name}:{other_port}/") as page:
            told = page.evaluate(ATTACK, [own, token, link])
            assert set(told.values()) <= HARMLESS, told
            assert (
                told["image"] == told["icon"] == told["script"] == told["style"] == told["live"] == "failed"
            )
            assert len(told) == 18
            assert page.evaluate("window.name + document.body.innerText").find(QUESTION) < 0
        asked = {one.what for one in passes}
        assert {"GET /", "POST /change", "GET /live", "GET /static/0/base.js", "GET /enter"} <= asked
        # The same site, by another port, gets the cookie sent along; that is not enough.
        assert any(one.is_known for one in passes) is (name == "127.0.0.1")
        assert [one for one in passes if one.is_let_in] == []
        assert changes == []
        # The link was not used up by any of it, and the visitor still is one.
        assert "set-cookie" in visit.get(link.removeprefix(own)).headers
        seen.page.goto(own)
        assert seen.page.get_by_text(QUESTION).is_visible()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_window_that_another_site_opens_is_not_looked_into(
    browser: Browser, visit: Visit, other_port: int, name: str
) -> None:
    with (
        visit_page(browser, visit) as seen,
        lured(seen, f"http://{name}:{other_port}/") as page,
    ):
        page.evaluate("own => { window.opened = window.open(own + '/'); }", f"http://{visit.host}")
        page.wait_for_timeout(700)
        reading = (
            "(() => { try { return opened.document.body.innerText; } catch (error) { return 'closed'; } })()"
        )
        assert page.evaluate(reading) in ("closed", "")
        shown = [one for one in page.context.pages if one.url == f"http://{visit.host}/" and one != seen.page]
        assert all(QUESTION not in one.inner_text("body") for one in shown)


def test_a_name_that_was_made_to_lead_here_shows_nothing(
    browser: Browser, visit: Visit, passes: list[Pass]
) -> None:
    with visit_page(browser, visit) as seen:
        seen.page.context.unroute_all()
        seen.page.goto("about:blank")  # our own page would go on asking for news
        link = visit.web.create_link()
        passes.clear()
        rebound = f"http://{REBOUND}:{visit.web.port}"
        page = seen.page.context.new_page()
        for path in (
            "/",
            "/enter",
            link.removeprefix(f"http://{visit.host}"),
            "/static/0/base.js",
            "/nowhere",
        ):
            answer = page.goto(rebound + path)
            assert answer is not None
            assert answer.status == 421
        read = "async () => { const answer = await fetch('/'); return [answer.status, await answer.text()]; }"
        code, text = page.evaluate(read)
        assert (code, QUESTION in text) == (421, False)
        assert len(passes) >= 6
        assert not [one for one in passes if one.is_let_in]
        assert seen.page.context.cookies(rebound) == []
        page.close()


def test_the_cookie_is_out_of_reach_of_scripts(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        assert seen.page.evaluate("document.cookie") == ""
        (cookie,) = seen.page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert seen.page.evaluate("document.referrer") == ""
        assert "key=" not in seen.page.url


def test_a_page_with_a_hole_in_it_runs_and_loads_nothing(browser: Browser, visit: Visit) -> None:
    hole = (
        "<img src=x onerror=hit()><img src='http://127.0.0.1:9/x.png'><p id=p style='color: red'>x</p><a id=a href='javascript:hit()'>x</a>"
        "<iframe src='http://127.0.0.1:9/'></iframe><script>hit()</script><form id=f action='http://127.0.0.1:9/'></form>"
        "<link rel=stylesheet href='http://127.0.0.1:9/x.css'><base href='http://127.0.0.1:9/'>"
    )
    putting = "html => { document.body.append(document.createRange().createContextualFragment(html)); a.click(); f.submit(); }"
    with pytest.raises(AssertionError, match="Content Security Policy"), visit_page(browser, visit) as seen:  # noqa: PT012 - at the end
        seen.page.evaluate(putting, hole)
        seen.page.wait_for_timeout(300)
        assert (seen.hits(), seen.deeds) == (0, [])
        assert seen.style("#p", "color") != "rgb(255, 0, 0)"
