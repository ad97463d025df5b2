"""Opens the local web page in a real browser with a login link, and records its messages and requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Route

from support.chromium import WATCH, WIDE, OpenPage
from support.web_server import Visit


@contextmanager
def visit_page(browser: Browser, visit: Visit, width: int = WIDE, **options: Any) -> Iterator[OpenPage]:
    """Log in with a new link and yield the page; errors in it fail the test, requests to other hosts are deeds."""
    own, deeds, complaints = f"http://{visit.host}/", list[str](), list[str]()

    def told(message: ConsoleMessage) -> None:
        is_deed = "net::ERR_FAILED" in message.text  # a request that `asked_elsewhere` aborted
        if message.type in ("error", "warning") and not is_deed:
            complaints.append(f"{message.type}: {message.text}")

    def shown(dialog: Dialog) -> None:
        deeds.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked_elsewhere(route: Route) -> None:
        deeds.append(f"request: {route.request.url[:200]}")
        route.abort()

    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    context.add_init_script(WATCH)
    context.route(lambda url: not url.startswith((own, "data:")), asked_elsewhere)
    page = context.new_page()
    page.on("console", told)
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", shown)
    page.on("popup", lambda popup: deeds.append(f"popup: {popup.url}"))
    try:
        page.goto(visit.web.create_link())
        page.wait_for_url(own)
        yield OpenPage(page, deeds)
        assert complaints == [], complaints
    finally:
        context.close()
