"""The list of sessions as somebody uses it: typing, choosing, going there and back, by keyboard, while agents write."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import available
from support.chromium import NARROW, WIDE, OpenPage, accessibility_violations, install_axe
from support.gemini_home import ROOT, GeminiHome, gemini, user
from support.person import Person
from support.real_gemini import cache_folder
from support.web_page import visit_page
from support.web_server import Visit, run_web_server

MANY = 120
DEN = "/home/ann/dev/den"
A_SESSION = "<!doctype html><html lang=en><title>One</title><h1>A conversation</h1></html>"


class Den:
    """A home with many sessions, and a page that shows them."""

    def __init__(self, folder: Path) -> None:
        self.home = GeminiHome(folder)
        self.home.mark("almanac", ROOT)
        self.home.mark("den", DEN)
        self.person = Person(folder)
        for number in range(1, MANY + 1):
            self.say(number, f"bird number {number}" + (" sings" if number % 40 == 0 else ""))
        self.person.sync()

    def say(self, number: int, words: str) -> None:
        minute = number // 4
        said = [user(f"u{number}", minute, words), gemini(f"g{number}", minute, "It flies.")]
        project, root = ("almanac", ROOT) if number % 2 else ("den", DEN)
        self.home.lines(project, number, minute % 50, said, root=root, kind="main")


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Den:
    return Den(tmp_path_factory.mktemp("den") / "ann")


@pytest.fixture(scope="module")
def visit(den: Den) -> Iterator[Visit]:
    with run_web_server(str(den.person.archive)) as visit:
        yield visit


@pytest.fixture
def seen(browser: Browser, visit: Visit) -> Iterator[OpenPage]:
    with visit_page(browser, visit) as seen:
        seen.page.route(
            re.compile(r"/session\?"), lambda route: route.fulfill(body=A_SESSION, content_type="text/html")
        )
        yield seen
        assert seen.deeds == []


def field(page: Page) -> str:
    return page.locator("form.ask input[name=q]").input_value()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.textContent")).strip()


def test_the_list_is_searched_while_somebody_types(seen: OpenPage) -> None:
    page = seen.page
    page.locator("form.ask input[name=q]").press_sequentially("sings")
    expect(page.locator("[data-key]")).to_have_count(3)
    expect(page.locator("[data-key] mark").first).to_have_text("sings")
    expect(page.get_by_role("status")).to_have_text("3 conversations")
    assert page.url.endswith("/?q=sings")
    assert page.evaluate("document.activeElement.name") == "q"
    page.reload()
    expect(page.locator("[data-key]")).to_have_count(3)
    assert field(page) == "sings"


def test_filters_are_chosen_taken_off_and_come_back_to(seen: OpenPage) -> None:
    page = seen.page
    page.locator(".facets").get_by_role("link", name="almanac").click()
    expect(page.get_by_role("status")).to_have_text("60 conversations")
    assert focused(page).startswith("almanac")
    page.locator("form.ask input[name=q]").fill("sings")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("status")).to_have_text("120 conversations")
    assert field(page) == ""
    page.go_forward()
    expect(page.get_by_text("Nothing found")).to_be_visible()
    assert field(page) == "sings"
    page.get_by_role("link", name="project: almanac").click()
    expect(page.get_by_role("status")).to_have_text("3 conversations")


def test_scrolling_goes_on_and_back_leads_to_the_same_row(seen: OpenPage) -> None:
    page = seen.page
    expect(page.locator("[data-key]")).to_have_count(50)
    page.locator(".more a").scroll_into_view_if_needed()
    expect(page.locator("[data-key]")).to_have_count(100)
    row = page.locator("[data-key]").nth(80)
    key = row.get_attribute("data-key")
    row.scroll_into_view_if_needed()
    row.locator("a.title").focus()
    height = page.evaluate("scrollY")
    assert height > 1000
    page.keyboard.press("Enter")
    expect(page.get_by_text("A conversation")).to_be_visible()
    page.go_back()
    expect(page.locator("[data-key]:focus-within")).to_have_attribute("data-key", key or "")
    assert abs(page.evaluate("scrollY") - height) < 5


def test_everything_is_reached_by_keys(seen: OpenPage) -> None:
    page = seen.page
    first, second = (page.locator("[data-key] a.title").nth(place).inner_text() for place in (0, 1))
    page.keyboard.press("j")
    assert focused(page) == first
    page.keyboard.press("j")
    assert focused(page) == second
    page.keyboard.press("k")
    assert focused(page) == first
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.closest('.facets') !== null")
    page.keyboard.press("n")
    expect(page.locator("[data-key]")).to_have_count(100)
    expect(page.locator("[data-key] a.title").nth(50)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_text("to the filters")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_text("A conversation")).to_be_visible()


def test_the_palette_leads_anywhere_by_keys(seen: OpenPage) -> None:
    page = seen.page
    found = page.locator("#palette-found [data-row]")
    page.keyboard.press("Control+k")
    expect(found).to_have_count(8)
    page.keyboard.type("sings")
    expect(found.last).to_contain_text("All results for “sings”")
    expect(found.first.locator("mark")).to_have_text("sings")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('[data-row]') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/session\?key=.*&at=0#e0"))
    page.go_back()
    page.keyboard.press("/")
    page.keyboard.type("sings")
    expect(found.last).to_contain_text("All results for “sings”")
    page.keyboard.press("Escape")
    expect(page.locator("dialog.palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/\?q=sings$"))
    expect(page.locator("[data-key]")).to_have_count(3)


def test_enter_in_the_palette_opens_the_first(seen: OpenPage) -> None:
    page = seen.page
    page.keyboard.press("Control+k")
    page.keyboard.type("sings")
    expect(page.locator("#palette-found")).to_contain_text("All results for “sings”")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/session\?key="))


def test_a_list_renews_itself_where_it_stands(browser: Browser, tmp_path: Path) -> None:
    den = Den(tmp_path / "ann")
    with run_web_server(str(den.person.archive)) as visit, visit_page(browser, visit) as seen:
        page = seen.page
        expect(page.locator("[data-key]")).to_have_count(50)
        page.keyboard.press("j")
        page.keyboard.press("j")
        where = focused(page)
        page.wait_for_timeout(800)  # until the server has begun to look
        den.say(198, "a swan has come")
        den.person.sync()
        expect(page.locator("[data-key] a.title").first).to_have_text("a swan has come")
        assert focused(page) == where
        page.locator(".more a").scroll_into_view_if_needed()
        expect(page.locator("[data-key]")).to_have_count(100)
        height = page.evaluate("scrollY")
        den.say(199, "and another")
        den.person.sync()
        expect(page.locator(".fresh")).to_have_text("1 new")
        assert page.evaluate("scrollY") == height
        page.locator(".fresh").evaluate("one => one.click()")
        expect(page.locator("[data-key]", has_text="and another")).to_have_count(1)
        assert page.evaluate("scrollY") == 0


def test_it_works_without_script(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit, java_script_enabled=False) as seen:
        page = seen.page
        page.locator("form.ask input[name=q]").fill("sings")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("[data-key]")).to_have_count(3)
        page.locator(".facets").get_by_role("link", name="den").click()
        expect(page.get_by_role("status")).to_have_text("3 conversations")
        page.goto(f"http://{visit.host}/")
        page.get_by_role("link", name="More", exact=True).click()
        expect(page.locator("[data-key]")).to_have_count(50)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nobody_is_shut_out(browser: Browser, visit: Visit, width: int, scheme: str) -> None:
    with available():
        axe = install_axe(cache_folder(os.environ))
    with visit_page(browser, visit, width, color_scheme=scheme, bypass_csp=True) as seen:
        page = seen.page
        for path in ("/", "/?q=sings&project=den", "/?q=unheard", "/?q=%22&since=someday"):
            page.goto(f"http://{visit.host}{path}")
            assert seen.overhang() <= 0, path
            assert accessibility_violations(seen, axe) == [], path
        page.keyboard.press("Control+k")
        page.keyboard.type("sings")
        expect(page.locator("#palette-found")).to_contain_text("All results")
        assert accessibility_violations(seen, axe) == []
        assert seen.overhang() <= 0


def test_on_a_phone_the_filters_are_one_step_away(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit, NARROW) as seen:
        page = seen.page
        expect(page.locator(".facets")).to_be_hidden()
        page.get_by_role("link", name="Filters").click()
        page.locator(".facets").get_by_role("link", name="almanac").click()
        expect(page.get_by_role("status")).to_have_text("60 conversations")
        expect(page.locator(".facets")).to_be_hidden()
