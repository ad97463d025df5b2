"""Opens pages in a real browser, Chromium, and records their requests, messages and dialogs.

The browser is the system's own (`scripts/browser.sh`). axe, an accessibility checker, comes from npm and goes into
the same cache as the Gemini CLI (`real_gemini.cache_folder`).
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Dialog, Error, Page, Route, sync_playwright

from support.real_gemini import UnavailableError, install_once

AXE_VERSION = "4.14.0"
WIDE, NARROW = 1280, 360
_NAMES = ("chromium", "chromium-browser", "google-chrome")
WATCH = "window.hits = 0; window.hit = () => { window.hits += 1; };"
_AXE = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"


class OpenPage(NamedTuple):
    """An open page, and its `deeds`: requests, messages, dialogs and popups that it should not cause."""

    page: Page
    deeds: list[str]

    def hits(self) -> int:
        """Return how often injected code has run."""
        return int(self.page.evaluate("window.hits"))

    def turn_to(self, file: Path) -> None:
        """Open another page of the same folder."""
        self.page.goto(file.as_uri())

    def unfold(self) -> None:
        """Open every `details` element."""
        self.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    def overhang(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return int(
            self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    def style(self, selector: str, name: str) -> str:
        """Return a computed style property of an element."""
        return str(self.page.eval_on_selector(selector, f"one => getComputedStyle(one).{name}"))


@contextmanager
def start_chromium(*arguments: str) -> Iterator[Browser]:
    """Start the browser; raises UnavailableError if there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        raise UnavailableError("no Chromium on PATH")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", *arguments])
        except Error as error:
            raise UnavailableError(f"Chromium does not start: {error.message.splitlines()[0]}") from None
        yield browser
        browser.close()


@contextmanager
def open_file(browser: Browser, file: Path, width: int = WIDE, **options: Any) -> Iterator[OpenPage]:
    """Open a file, and record the page's requests, messages, dialogs and popups."""
    deeds: list[str] = []

    def shown(dialog: Dialog) -> None:
        deeds.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked(route: Route) -> None:
        if route.request.is_navigation_request() and route.request.url.startswith(file.parent.as_uri()):
            route.continue_()
        else:
            deeds.append(f"request: {route.request.url[:200]}")
            route.abort()

    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    context.add_init_script(WATCH)
    page = context.new_page()
    page.on("console", lambda message: deeds.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: deeds.append(f"error: {error}"))
    page.on("dialog", shown)
    page.on("popup", lambda popup: deeds.append(f"popup: {popup.url}"))

    context.route(lambda url: not url.startswith("data:"), asked)
    page.goto(file.as_uri())
    try:
        yield OpenPage(page, deeds)
    finally:
        context.close()


def install_axe(cache: Path) -> str:
    """Install axe once and return its script."""
    folder = cache / "axe-core" / AXE_VERSION
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    install_once(folder, ("npm", "install", "--prefix", str(folder), *options, f"axe-core@{AXE_VERSION}"), {})
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def accessibility_violations(seen: OpenPage, axe: str) -> list[str]:
    """Return axe's violations, each with its first element; open the page without its security policy."""
    seen.page.add_script_tag(content=axe)
    found = seen.page.evaluate(_AXE)
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:300]} {one['nodes'][0]['failureSummary'][:300]}"
        for one in found
    ]
