"""Pages in a real browser: nothing runs, nothing is loaded, everybody can read them, on a desk, a phone and paper."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser

from retold.demo.home import make_home
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.html.page import encode_index, encode_sessions
from retold.model.session import Session
from support.chromium import NARROW, WIDE, OpenPage, accessibility_violations, open_file
from support.hostile_texts import SHORT, TEXTS
from support.html_sessions import (
    assistant_message,
    call,
    everything,
    export_session,
    session_with_text,
    user_message,
)
from support.synced_archive import sync_archive

NOW = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)
ALL = ExportOptions(thoughts=True, tokens=True, notices=True)
SCREENSHOTS = "RETOLD_TEST_SCREENSHOTS"
"""The folder in which pictures of the pages are kept."""
HOSTILE = "\n\n".join(SHORT)
BUSY = ("3.html", "40.html")
"""Two pages of the demo with much in them."""
LOOKS = ((WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark"))


class Site(NamedTuple):
    """Pages in a folder."""

    folder: Path
    names: list[str]

    def file(self, name: str) -> Path:
        return self.folder / name


def write(file: Path, told: ExportSession, choice: ExportOptions = ALL) -> Path:
    with file.open("wb") as stream:
        stream.writelines(encode_sessions([told], choice))
    return file


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Every conversation of the demo as a page, and an index of them."""
    made = make_home(tmp_path_factory.mktemp("made") / "demo", NOW)
    sessions = {
        one.key: one for one in sync_archive(made.variables["RETOLD_HOME"], made.variables).sessions()
    }
    folder = tmp_path_factory.mktemp("site")
    listed = [
        (f"{number}.html", one) for number, one in enumerate(sessions.values()) if one.kind != "subagent"
    ]
    for name, session in listed:
        write(folder / name, _telling(session, sessions))
    (folder / "index.html").write_bytes(b"".join(encode_index(listed, ALL)))
    return Site(folder, ["index.html", *(name for name, _ in listed)])


def _telling(session: Session, sessions: dict[str, Session]) -> ExportSession:
    return ExportSession(session, {key: _telling(sessions[key], sessions) for key in session.children})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Pages with a bit of everything, of hostile texts, and of endless ones."""
    folder = tmp_path_factory.mktemp("made-up")
    long = "x" * 10_000_000
    write(folder / "everything.html", everything())
    write(folder / "hostile.html", session_with_text(HOSTILE))
    write(
        folder / "endless.html",
        export_session(
            user_message(long),
            assistant_message(long, call(long[:9999], arguments={"a": long}, result=long)),
            title=long[:500],
        ),
    )
    (folder / "hostile-index.html").write_bytes(
        b"".join(encode_index([(text, session_with_text(text).session) for text in TEXTS], ALL))
    )
    return Site(folder, ["everything.html", "hostile.html", "endless.html", "hostile-index.html"])


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get(SCREENSHOTS) or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_the_watch_sees_what_it_watches_for(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<script>hit(); alert('boo'); console.log('said')</script><img src='http://127.0.0.1:9/x.png'>"
    )
    with open_file(browser, bad) as seen:
        assert seen.hits() == 1
        assert {deed.partition(":")[0] for deed in seen.deeds} == {"dialog", "console", "request"}


def test_every_page_of_the_demo_is_quiet_and_fits(browser: Browser, demo: Site) -> None:
    assert len(demo.names) > 50
    with open_file(browser, demo.file("index.html")) as seen:
        for name in demo.names:
            seen.turn_to(demo.file(name))
            _check(seen, name)


@pytest.mark.parametrize("name", ["everything.html", "hostile.html", "endless.html", "hostile-index.html"])
def test_nothing_runs_and_nothing_is_loaded_whatever_was_said(
    browser: Browser, made: Site, name: str
) -> None:
    with open_file(browser, made.file(name)) as seen:
        _check(seen, name)
        seen.page.evaluate(
            "document.querySelectorAll('main *').forEach(one => one.dispatchEvent(new Event('mouseover')))"
        )
        assert (seen.hits(), seen.deeds) == (0, [])


def _check(seen: OpenPage, name: str) -> None:
    """Look at a page folded and unfolded, wide and narrow."""
    for width in (WIDE, NARROW):
        seen.page.set_viewport_size({"width": width, "height": 800})
        assert seen.overhang() <= 0, (name, width)
    seen.unfold()
    for width in (NARROW, WIDE):
        seen.page.set_viewport_size({"width": width, "height": 800})
        assert seen.overhang() <= 0, (name, width, "unfolded")
    assert (seen.hits(), seen.deeds) == (0, []), name


def test_the_policy_stops_what_a_template_lets_through(browser: Browser, tmp_path: Path) -> None:
    """Even a page with a hole in it runs and loads nothing."""
    (tmp_path / "entry.html").write_text(
        "<script>hit()</script><img src=x onerror=hit()><img src='http://127.0.0.1:9/x.png'><p id=p style='color: red'>x</p>"
        "<base href='http://127.0.0.1:9/'><iframe src='http://127.0.0.1:9/'></iframe><a id=a href='javascript:hit()'>x</a>"
        "<link rel=stylesheet href='http://127.0.0.1:9/x.css'><object data='http://127.0.0.1:9/'></object>"
    )
    file = write(tmp_path / "told.html", export_session(user_message("x")), ExportOptions(templates=tmp_path))
    with open_file(browser, file) as seen:
        seen.page.evaluate("document.getElementById('a').click()")
        assert seen.hits() == 0
        assert not [deed for deed in seen.deeds if not deed.startswith("console: ")]
        assert seen.style("#p", "color") != "rgb(255, 0, 0)"


@pytest.mark.parametrize("look", [(WIDE, "light"), (NARROW, "dark")])
def test_axe_finds_nothing_that_shuts_people_out(
    browser: Browser, made: Site, demo: Site, axe: str, look: tuple[int, str]
) -> None:
    width, scheme = look
    for site, names in ((made, ("everything.html", "hostile.html")), (demo, ("index.html", *BUSY))):
        with open_file(browser, site.file(names[0]), width, color_scheme=scheme, bypass_csp=True) as seen:
            for name in names:
                seen.turn_to(site.file(name))
                seen.unfold()
                assert accessibility_violations(seen, axe) == [], name


def test_it_can_be_read_without_scripts(browser: Browser, made: Site) -> None:
    with open_file(browser, made.file("everything.html"), java_script_enabled=False) as seen:
        seen.page.click("text=write_file")
        assert seen.page.locator(".diff .added").first.is_visible()


def test_it_is_light_or_dark_as_the_reader_likes_it(
    browser: Browser, made: Site, demo: Site, shots: Path
) -> None:
    paper = set()
    for width, scheme in LOOKS:
        for file in (made.file("everything.html"), demo.file("index.html")):
            with open_file(browser, file, width, color_scheme=scheme) as seen:
                seen.page.screenshot(path=shots / f"{file.stem}-{width}-{scheme}.png")
                paper.add(seen.style("body", "backgroundColor"))
    assert len(paper) == 2


def test_all_of_it_unfolded_is_kept_as_a_picture(browser: Browser, made: Site, shots: Path) -> None:
    for name, height in (("everything", 3000), ("hostile", 6000)):
        with open_file(browser, made.file(f"{name}.html")) as seen:
            seen.unfold()
            seen.page.set_viewport_size({"width": WIDE, "height": height})
            seen.page.screenshot(path=shots / f"{name}-unfolded.png")
            assert seen.overhang() <= 0


def test_the_prompts_stand_beside_on_a_desk_and_are_folded_on_a_phone(browser: Browser, made: Site) -> None:
    with open_file(browser, made.file("everything.html")) as seen:
        link = seen.page.locator(".contents a").first
        assert link.is_visible()
        seen.page.set_viewport_size({"width": NARROW, "height": 800})
        assert not link.is_visible()
        seen.page.click(".contents summary")
        assert link.is_visible()


def test_a_link_to_what_was_taken_back_unfolds_it(browser: Browser, made: Site) -> None:
    with open_file(browser, made.file("everything.html")) as seen:
        assert not seen.page.locator("#m3").is_visible()
        seen.page.click(".contents a[href='#m3']")
        assert seen.page.locator("#m3").is_visible()


def test_everything_is_reached_with_the_keyboard(browser: Browser, made: Site) -> None:
    with open_file(browser, made.file("everything.html")) as seen:
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.className") == "skip"
        seen.page.keyboard.press("Enter")
        for _ in range(20):
            seen.page.keyboard.press("Tab")
            if seen.page.evaluate("document.activeElement.parentElement.className") == "call success":
                break
        seen.page.keyboard.press("Enter")
        assert seen.page.locator("details.call.success").first.get_attribute("open") == ""


def test_a_text_turns_no_other(browser: Browser, made: Site) -> None:
    with open_file(browser, made.file("hostile.html")) as seen:
        seen.unfold()
        for selector in (".said", ".prose", "pre", "bdi", "h1"):
            assert seen.style(selector, "unicodeBidi") in ("isolate", "plaintext"), selector


def test_on_paper_it_is_dark_on_white_and_without_what_cannot_be_clicked(
    browser: Browser, made: Site, shots: Path
) -> None:
    with open_file(browser, made.file("everything.html"), color_scheme="dark") as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert seen.style("body", "color") == "rgb(0, 0, 0)"
        assert seen.style("html", "backgroundColor") in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
        assert not seen.page.locator(".contents").is_visible()
        data = seen.page.pdf(path=shots / "everything.pdf", print_background=True)
        assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 1
        seen.page.screenshot(path=shots / "everything-print.png", full_page=True)
