"""The pages of figures in a real browser: for everybody, on a desk and a phone, with a mouse, with keys, without script."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from support.chromium import NARROW, WIDE, OpenPage, accessibility_violations
from support.person import Person
from support.report_pages import archive_demo, page_links
from support.web_page import visit_page
from support.web_server import Visit, run_web_server

LOOKS = ((WIDE, "light"), (NARROW, "dark"))
SCREENSHOTS = "RETOLD_TEST_SCREENSHOTS"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return archive_demo(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


@pytest.fixture(scope="module")
def paths(visit: Visit) -> dict[str, str]:
    """Every page of figures."""
    project = next(link for link in page_links(visit.get("/projects").text) if link.startswith("/projects?"))
    file = next(link for link in page_links(visit.get("/files").text) if link.startswith("/files?path="))
    changes = next(link for link in page_links(visit.get(file).text) if link.startswith("/files/changes"))
    return {
        "spend": "/spend",
        "year": "/spend?period=year&show=sessions",
        "nothing": "/spend?since=1999-01-01&until=1999-01-02",
        "ledger": "/spend/ledger?period=all",
        "tools": "/tools",
        "tool": "/tools?tool=Bash&period=all",
        "projects": "/projects",
        "project": project,
        "unknown": "/projects?root=unknown",
        "files": "/files",
        "file": file,
        "changes": changes,
    }


def turn_to(seen: OpenPage, visit: Visit, path: str) -> None:
    seen.page.goto(f"http://{visit.host}{path}")


@pytest.mark.parametrize("how", LOOKS, ids=str)
def test_everybody_can_read_every_page(
    browser: Browser, visit: Visit, axe: str, paths: dict[str, str], how: tuple[int, str]
) -> None:
    (width, look), found = how, dict[str, list[str]]()
    with visit_page(browser, visit, width, color_scheme=look, bypass_csp=True) as seen:
        for name, path in paths.items():
            turn_to(seen, visit, path)
            seen.unfold()
            found[name] = accessibility_violations(seen, axe)
            assert seen.overhang() <= 0, name
            if folder := os.environ.get(SCREENSHOTS):
                seen.page.screenshot(path=Path(folder) / f"figures-{name}-{width}-{look}.png", full_page=True)
    assert {name: told for name, told in found.items() if told} == {}


def test_pages_ask_nobody_else_and_say_nothing(browser: Browser, visit: Visit, paths: dict[str, str]) -> None:
    with visit_page(browser, visit) as seen:
        for path in paths.values():
            turn_to(seen, visit, path)
        assert seen.deeds == []
        assert seen.hits() == 0


def test_a_day_of_the_calendar_leads_to_that_day(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        turn_to(seen, visit, "/spend?period=all&agent=claude")
        cell = seen.page.locator(".calendar a[tabindex='0']")
        day = (cell.get_attribute("aria-label") or "").partition(":")[0]
        cell.click()
        expect(seen.page.locator(".chosen")).to_contain_text(f"{day} · agent claude")
        assert f"since={day}&until={day}" in seen.page.url


def test_arrows_move_in_a_picture_that_tab_enters_once(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        turn_to(seen, visit, "/spend?period=30d")
        page = seen.page
        page.locator(".columns a[tabindex='0']").focus()
        last = page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.keyboard.press("ArrowLeft")
        before = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert before < last
        assert page.locator(".columns a[tabindex='0']").count() == 1
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == last
        page.keyboard.press("Enter")
        expect(page.locator(".chosen")).to_contain_text(last.partition(":")[0])


def test_a_choice_shows_at_once(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        turn_to(seen, visit, "/spend?period=30d")
        seen.page.locator("select[name=agent]").select_option("codex")
        expect(seen.page.locator(".chosen")).to_contain_text("agent codex")
        expect(seen.page.locator(".periods [aria-current]")).to_have_text("30 days")
        assert "model=" not in seen.page.url, "what was not chosen is not in the address"


def test_changes_are_loaded_when_they_are_opened(
    browser: Browser, visit: Visit, paths: dict[str, str]
) -> None:
    with visit_page(browser, visit) as seen:
        asked: list[str] = []
        seen.page.on("request", lambda request: asked.append(request.url))
        turn_to(seen, visit, paths["file"])
        assert not [url for url in asked if "/files/changes" in url]
        summary = seen.page.locator(".changer > summary").first
        summary.focus()
        seen.page.keyboard.press("Enter")
        expect(seen.page.locator(".changer .diff").first).to_be_visible()
        assert len([url for url in asked if "/files/changes" in url]) == 1
        added = seen.page.locator(".diff .added").first
        assert added.evaluate("one => getComputedStyle(one).color") != seen.style("body", "color")


def test_pages_are_whole_without_script(browser: Browser, visit: Visit, paths: dict[str, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(visit.web.create_link())
    page.goto(f"http://{visit.host}/spend")
    page.locator("select[name=agent]").select_option("claude")
    page.get_by_role("button", name="Show").click()
    assert "agent claude" in (page.locator(".chosen").text_content() or "")
    page.goto(f"http://{visit.host}{paths['file']}")
    page.locator(".changer > summary").first.click()
    page.get_by_role("link", name="What it changed").first.click()
    assert page.locator(".diff").count() >= 1
    context.close()


def test_a_walk_by_keys_alone(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.keyboard.press("g")
        page.keyboard.press("p")
        page.wait_for_url("**/projects")
        page.keyboard.press("j")
        page.keyboard.press("j")
        name = page.evaluate("document.activeElement.textContent")
        assert seen.style(":focus", "outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**/projects?root=*")
        assert page.locator("h1").text_content() == name


def test_an_address_with_markup_runs_nothing(browser: Browser, visit: Visit) -> None:
    hostile = quote('"><img src=x onerror=hit()><svg onload=hit()>')
    with visit_page(browser, visit) as seen:
        for path in (
            "/spend?model=",
            "/spend/ledger?session=",
            "/tools?agent=",
            "/files?q=",
            "/spend?project=",
        ):
            turn_to(seen, visit, path + hostile)
            assert seen.hits() == 0
        assert seen.deeds == []
