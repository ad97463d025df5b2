"""The page of one conversation in a real browser: scrolled, opened, searched, and growing."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from retold.demo.home import make_home
from support.chromium import NARROW, WIDE, OpenPage, accessibility_violations
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.synced_archive import sync_archive
from support.web_page import visit_page
from support.web_server import Visit, run_web_server

NOW = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)
KEY = "gemini:session-2026-03-01T09-01-00000001"
LONG_KEY = "gemini:session-2026-03-01T09-10-00000002"
ENTRIES = 200
HOSTILE = "<script>hit()</script><img src=x onerror=hit()> <svg onload=hit()> [go](javascript:hit())"
LOOKS = ((WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark"))


class Demo(NamedTuple):
    """The demo as it is served, and the keys of its sessions by their titles."""

    visit: Visit
    keys: dict[str, str]


def session(visit: Visit, key: str = KEY, more: str = "") -> str:
    return f"http://{visit.host}/session?key={quote(key, safe='')}{more}"


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    home = GeminiHome(tmp_path_factory.mktemp("ann"))
    output = [{"functionResponse": {"name": "x", "response": {"output": "bittern " * 500}}}]
    calls = [
        call("read_file", {"file_path": "reeds.py"}, 2),
        call("run_shell_command", {"command": "cat marsh.txt"}, 2) | {"result": output},
    ]
    thoughts = [{"subject": "Waders", "description": "They wade.", "timestamp": "2026-03-01T09:02:00.000Z"}]
    home.lines(
        "den",
        1,
        1,
        [
            user("u1", 1, f"Where do herons nest? {HOSTILE}"),
            gemini("g1", 2, f"In *reeds*. {HOSTILE}", calls) | {"thoughts": thoughts},
            user("u2", 3, "And in winter?"),
            gemini("g2", 4, "Near open water."),
            {"$rewindTo": "u2"},
            user("u3", 5, "And in summer?"),
            gemini("g3", 5, "In trees."),
        ],
        kind="main",
    )
    said = [
        (user if place % 2 == 0 else gemini)(
            f"m{place}", 10 + place // 10, f"Sentence {place} of the long one."
        )
        for place in range(ENTRIES)
    ]
    said[170]["content"] = "Here a capercaillie calls."
    home.lines("den", 2, 10, said, kind="main")
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        yield visit


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = make_home(tmp_path_factory.mktemp("made") / "demo", NOW)
    found = sync_archive(made.variables["RETOLD_HOME"], made.variables).summaries()
    with run_web_server(made.variables["RETOLD_HOME"]) as visit:
        yield Demo(visit, {one.title or "": one.key for one in found})


def ids(page: Page) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('.slice > .entry')].map(one => one.id)")
    return found


def test_further_entries_come_as_one_scrolls_down(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit, LONG_KEY))
        assert len(ids(page)) < ENTRIES
        for _ in range(40):
            page.mouse.wheel(0, 4_000)
            page.wait_for_timeout(60)
        assert ids(page) == [f"e{place}" for place in range(ENTRIES)]
        assert int(page.locator(".turns a[aria-current]").get_attribute("data-place") or 0) > ENTRIES - 20
        assert seen.deeds == []


def test_further_entries_come_as_one_scrolls_up_and_what_is_read_stays(
    browser: Browser, visit: Visit
) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit, LONG_KEY, "&at=150#e150"))
        expect(page.locator("#e110")).to_be_attached()
        page.wait_for_timeout(400)
        top = page.evaluate("document.getElementById('e150').getBoundingClientRect().top")
        assert 0 < top < 400
        for _ in range(60):
            page.mouse.wheel(0, -3_000)
            page.wait_for_timeout(50)
        found = ids(page)
        assert found[:151] == [f"e{place}" for place in range(151)]


def test_toggles_act_at_once_and_are_kept(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit))
        expect(page.locator(".call").first).to_be_visible()
        expect(page.locator(".thought")).to_be_hidden()
        expect(page.locator(".run.rewound")).to_be_visible()
        page.keyboard.press("t")
        expect(page.locator(".thought")).to_be_visible()
        page.keyboard.press("b")
        expect(page.locator(".run.rewound")).to_be_hidden()
        page.keyboard.press("o")
        assert page.locator("details.call").first.get_attribute("open") is not None
        page.keyboard.press("o")
        expect(page.locator(".call").first).to_be_hidden()
        page.keyboard.press("u")
        expect(page.locator(".tokens").first).to_be_visible()
        page.goto(session(visit))
        classes = (
            page.request.get(session(visit)).text().partition('<div class="transcript ')[2].partition('"')[0]
        )
        assert classes.split() == ["show-thoughts", "show-tokens"]
        expect(page.locator(".run.rewound")).to_be_hidden()
        expect(page.locator("[data-tools=none].toggle")).to_have_attribute("aria-pressed", "true")


def test_a_call_is_fetched_when_it_is_opened(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit))
        assert "bittern" not in page.content()
        page.locator("#e1-2 > summary").click()
        expect(page.locator("#e1-2 pre").last).to_contain_text("bittern bittern")


def test_a_place_is_found_that_was_not_there_yet(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit, LONG_KEY))
        assert "e170" not in ids(page)
        page.keyboard.press("f")
        page.keyboard.type("capercaillie")
        expect(page.locator(".hits a")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator("#e170")).to_be_in_viewport()
        expect(page.locator("#e170")).to_have_class("entry prompt has-words asked")
        assert "at=170" in page.url


def test_keys_lead_from_turn_to_turn(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit, LONG_KEY))
        page.keyboard.press("]")
        expect(page.locator("#e2.asked")).to_be_in_viewport()
        page.keyboard.press("]")
        expect(page.locator("#e4.asked")).to_be_in_viewport()
        page.keyboard.press("[")
        expect(page.locator("#e2.asked")).to_be_in_viewport()


def test_the_outline_leads_into_what_was_taken_back(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit))
        expect(page.locator("#e2")).to_be_hidden()
        page.locator(".turns .taken a").click()
        expect(page.locator("#e2")).to_be_visible()
        expect(page.locator("#e2 .fate")).to_have_text("taken back")


def test_what_is_selected_is_searched_for_everywhere(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit))
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#e5 .prose'))")
        expect(page.locator(".search-selected")).to_be_visible()
        page.keyboard.press("s")
        page.wait_for_url("**/?q=%22In+trees.%22")


def test_it_is_copied_as_markdown(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit, permissions=["clipboard-read", "clipboard-write"]) as seen:
        page = seen.page
        page.goto(session(visit))
        page.get_by_text("Copy as Markdown").click()
        expect(page.locator(".said-of-it")).to_have_text("Copied")
        assert "And in summer?" in page.evaluate("navigator.clipboard.readText()")


def test_nothing_that_was_said_runs(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit))
        seen.unfold()
        page.locator(".find-here input[type=search]").fill("herons")
        expect(page.locator(".hits a").first).to_be_visible()
        page.wait_for_timeout(300)
        assert seen.hits() == 0
        assert seen.deeds == []


def test_it_grows_while_somebody_looks(browser: Browser, tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "bea")
    said = [
        (user if place % 2 == 0 else gemini)(f"m{place}", place, f"Sentence {place} of it.")
        for place in range(20)
    ]
    file = home.lines("den", 1, 1, said, kind="main")
    person = Person(home.folder)
    person.sync()

    def say(*records: object) -> None:
        with file.open("a") as stream:
            stream.writelines(json.dumps(record) + "\n" for record in records)
        person.sync()

    with run_web_server(str(person.archive)) as visit, visit_page(browser, visit) as seen:
        page = seen.page
        page.goto(session(visit))
        expect(page.locator("#e19")).to_be_attached()
        page.keyboard.press("End")
        page.wait_for_timeout(700)
        page.keyboard.press("End")
        say(user("n1", 30, "A new question"), gemini("n2", 31, "A new answer"))
        expect(page.get_by_text("A new answer")).to_be_in_viewport()
        expect(page.locator(".turns")).to_contain_text("A new question")
        expect(page.locator(".new-below")).to_be_hidden()
        page.evaluate("scrollTo(0, 0)")
        say(user("n3", 32, "One more"), gemini("n4", 33, "And its answer"))
        expect(page.locator(".new-below")).to_be_visible()
        assert page.evaluate("scrollY") == 0
        page.locator(".new-below").click()
        expect(page.get_by_text("And its answer")).to_be_in_viewport()
        expect(page.locator(".changed-above")).to_have_count(0)
        say({"$rewindTo": "m18"})
        expect(page.locator(".changed-above")).to_be_visible()


def test_a_subagent_is_told_inside_its_call(browser: Browser, demo: Demo) -> None:
    with visit_page(browser, demo.visit) as seen:
        page = seen.page
        page.goto(session(demo.visit, demo.keys["Find every place that assumes grams"]))
        call_ = page.locator("details.call:has(> details.subagent)").first
        call_.locator("> summary").click()
        call_.locator("> details.subagent > summary").click()
        expect(call_.locator("details.subagent .entry").first).to_be_visible()
        assert page.evaluate(
            "(all => all.length === new Set(all).size)([...document.querySelectorAll('[id]')].map(one => one.id))"
        )


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_everybody_can_read_it(browser: Browser, visit: Visit, axe: str, width: int, scheme: str) -> None:
    options = {"color_scheme": scheme, "bypass_csp": True}
    with visit_page(browser, visit, width, **options) as seen:
        page = seen.page
        page.goto(session(visit))
        page.keyboard.press("t")
        page.keyboard.press("u")
        seen.unfold()
        page.wait_for_timeout(500)
        assert accessibility_violations(seen, axe) == []
        assert seen.overhang() == 0


@pytest.mark.parametrize(("width", "scheme"), LOOKS[::3])
def test_a_busy_one_of_the_demo(browser: Browser, demo: Demo, axe: str, width: int, scheme: str) -> None:
    with visit_page(browser, demo.visit, width, color_scheme=scheme, bypass_csp=True) as seen:
        page = seen.page
        page.goto(session(demo.visit, demo.keys["Christmas pre-orders: stollen per day"]))
        _unfold_panels(seen)
        assert accessibility_violations(seen, axe) == []
        assert seen.overhang() == 0


def _unfold_panels(seen: OpenPage) -> None:
    for panel in ("#elsewhere", "#ledger"):
        seen.page.locator(f"{panel} > summary").click()
    expect(seen.page.locator("#ledger table")).to_be_visible()
