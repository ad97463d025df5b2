"""Health in a real browser: a lost session is found and restored without a mouse, and nobody is shut out."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from playwright.sync_api import Browser

from support.chromium import NARROW, WIDE, OpenPage, accessibility_violations
from support.demo_person import DemoPerson
from support.web_page import visit_page
from support.web_server import Visit, run_web_server

SCREENSHOTS = "RETOLD_TEST_SCREENSHOTS"
PATIENCE = 40_000


@pytest.fixture
def ann(tmp_path: Path) -> DemoPerson:
    return DemoPerson(tmp_path)


@pytest.fixture
def visit(ann: DemoPerson) -> Iterator[Visit]:
    with patch.dict(os.environ, ann.env), run_web_server(str(ann.archive)) as visit:
        yield visit


def key_of(ann: DemoPerson) -> str:
    """Return a conversation of Gemini CLI that lies in one file."""
    names = [path.stem for path in ann.sources() if path.name.startswith("session-")]
    alone = [name for name in names if sum(name[-8:] in other for other in names) == 1]
    return next(key for name in alone if (key := f"gemini:{name}") in ann.rows())


def tab_to(seen: OpenPage, name: str) -> None:
    """Press Tab until something of this name is reached."""
    for _ in range(80):
        seen.page.keyboard.press("Tab")
        reached = seen.page.evaluate("document.activeElement.innerText")
        if str(reached).startswith(name):
            assert seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"no way to {name}")


def test_a_lost_session_is_restored_without_a_mouse(browser: Browser, visit: Visit, ann: DemoPerson) -> None:
    key = key_of(ann)
    before = ann.tree()
    (gone,) = ann.lose(key)
    title = str(ann.rows()[key]["title"])
    assert ann.lost() == [key]
    with visit_page(browser, visit) as seen:
        seen.page.keyboard.press("g")
        seen.page.keyboard.press("h")
        seen.page.wait_for_url("**/health")
        assert "is gone from your agents' homes" in seen.page.inner_text("main")
        tab_to(seen, "See and restore")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**/health?show=lost")
        assert title in seen.page.inner_text("main")
        tab_to(seen, "Restore")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**/restore?*")
        assert str(gone.parent) in seen.page.inner_text("main")
        tab_to(seen, "Restore")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**&done=1", timeout=PATIENCE)
        assert "It is back." in seen.page.inner_text("main")
        assert "gemini --resume" in seen.page.inner_text("#way-on")
        seen.page.goto(f"http://{visit.host}/health?show=lost")
        assert "No session is lost." in seen.page.inner_text("main")
        assert seen.deeds == []
    assert ann.lost() == []
    after = ann.tree()
    (added,) = after.keys() - (before.keys() - {str(gone)})
    assert Path(added).parent == gone.parent
    del before[str(gone)], after[added]
    assert after == before


def test_archiving_says_that_it_is_at_it_and_what_it_came_to(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        seen.page.goto(f"http://{visit.host}/health")
        tab_to(seen, "Archive now")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**/health?synced=1", timeout=PATIENCE)
        assert "Nothing was new in" in seen.page.inner_text("[role=status]")


def test_it_works_without_scripts(browser: Browser, visit: Visit, ann: DemoPerson) -> None:
    key = key_of(ann)
    ann.lose(key)
    with visit_page(browser, visit, java_script_enabled=False) as seen:
        seen.page.goto(f"http://{visit.host}/health")
        seen.page.click("text=See and restore")
        seen.page.click(".each .button, .deeds .button")
        seen.page.click("button.main")
        seen.page.wait_for_url("**&done=1", timeout=PATIENCE)
    assert ann.lost() == []


@pytest.mark.parametrize("look", [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")])
def test_nobody_is_shut_out(
    browser: Browser, visit: Visit, ann: DemoPerson, axe: str, look: tuple[int, str]
) -> None:
    width, scheme = look
    key = key_of(ann)
    ann.lose(key)
    shots = Path(os.environ.get(SCREENSHOTS) or ann.folder)
    with visit_page(browser, visit, width, color_scheme=scheme, bypass_csp=True) as seen:
        for name, path in (
            ("health", "/health?again=1"),
            ("lost", "/health?show=lost"),
            ("restore", f"/restore?key={key}"),
        ):
            seen.page.goto(f"http://{visit.host}{path}")
            seen.unfold()
            assert seen.overhang() <= 0, path
            assert accessibility_violations(seen, axe) == [], path
            seen.page.screenshot(path=shots / f"{name}-{width}-{scheme}.png", full_page=True)
