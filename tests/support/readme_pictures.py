"""Takes the pictures in the README: the web pages and the terminal browser, with the data of `retold demo`."""

import asyncio
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

from playwright.sync_api import Page

from retold.demo.home import home_files
from retold.demo.story import stories
from retold.demo.timeline import StorySetting
from retold.tui.app import Browser
from retold.tui.data import ArchiveQueries
from support.chromium import start_chromium
from support.person import Person
from support.terminal_browser import press, wait_until_idle
from support.web_page import visit_page
from support.web_server import run_web_server

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
MADE_FROM = FOLDER / "made-from.txt"
_SOURCES = ("demo/**/*.py", "web/static/*", "web/templates/*", "export/html/templates/*", "tui/*.tcss")
"""Files that determine how the pictures look. After a change to one of them, take the pictures again."""
_WIDE, _HIGH = 1280, 760
_TERMINAL = (112, 32)
_READ = "ovens cost"
"""Part of the title of the conversation in the picture, which has rewound turns and tool calls."""
_TYPED = "bakery"


def source_digest() -> str:
    """Return a hash of `_SOURCES`, which shows whether the pictures are up to date."""
    found = hashlib.sha256()
    for pattern in _SOURCES:
        for path in sorted((ROOT / "src" / "retold").glob(pattern)):
            found.update(path.name.encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return found.hexdigest()


def take_pictures(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the bytes of every picture; raises UnavailableError without a browser."""
    mira = _person(folder)
    with patch.dict("os.environ", mira.env, clear=True):
        drawing = asyncio.run(_terminal(str(mira.archive)))  # before Playwright starts an event loop
        with start_chromium() as program, run_web_server(str(mira.archive)) as visit:
            with visit_page(program, visit, _WIDE) as seen:
                seen.page.set_viewport_size({"width": _WIDE, "height": _HIGH})
                for name, path in _pages(mira):
                    seen.page.goto(f"http://{visit.host}{path}")
                    yield name, seen.page.screenshot()
            yield "browse.png", _drawn(program.new_page(), drawing)


def _person(folder: Path) -> Person:
    """Return a person with the demo's conversations, which contain no path of this machine."""
    setting = StorySetting(Path("/"), datetime.now(UTC))
    for file in home_files(stories(), setting):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8", newline="")
    mira = Person(folder)
    mira.age()
    mira.sync()
    return mira


def _pages(mira: Person) -> Iterator[tuple[str, str]]:
    titles = {one["title"]: one["key"] for one in mira.run("list", "--json").objects}
    key = next(key for title, key in titles.items() if title and _READ in title)
    yield "sessions.png", "/?q=oven"
    yield "session.png", f"/session?key={quote(key, safe='')}"
    yield "spend.png", "/spend?period=30d"


async def _terminal(archive: str) -> str:
    app = Browser(ArchiveQueries(archive, (), "/"))
    app.theme = "textual-dark"
    async with app.run_test(size=_TERMINAL) as pilot:
        await wait_until_idle(pilot)
        await press(pilot, *_TYPED)
        return app.export_screenshot(title="retold browse")


def _drawn(page: Page, picture: str) -> bytes:
    """Return a browser's screenshot of an SVG; the browser may not send any request."""
    page.route("**/*", lambda route: route.abort())
    page.set_content(f"<body style='margin:0'>{picture}</body>")
    return page.locator("svg").first.screenshot()
