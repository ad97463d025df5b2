"""The local page in a real browser, as somebody sees it who has followed a link."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Dialog, Route

from browser import WIDE, Seen
from served import Visit


@contextmanager
def visited(browser: Browser, visit: Visit, width: int = WIDE, **options: Any) -> Iterator[Seen]:
    """Enter, and watch what pages do: errors fail the test, and whatever goes elsewhere is among the deeds."""
    deeds: list[str] = []
    errors: list[str] = []

    def shown(dialog: Dialog) -> None:
        deeds.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked(route: Route) -> None:
        if route.request.url.startswith(f"http://{visit.host}/"):
            route.continue_()
        else:
            deeds.append(f"request: {route.request.url[:200]}")
            route.abort()

    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    context.add_init_script("window.hits = 0; window.hit = () => { window.hits += 1; };")
    page = context.new_page()
    page.on(
        "console",
        lambda message: errors.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", shown)
    page.on("popup", lambda popup: deeds.append(f"popup: {popup.url}"))
    context.route(lambda url: not url.startswith("data:"), asked)
    page.goto(visit.web.link())
    page.wait_for_url(f"http://{visit.host}/")
    try:
        yield Seen(page, deeds)
    finally:
        context.close()
    assert errors == []
