"""The watch over the local page: it sees what it watches for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.one_session import person_with_one_session
from support.web_page import visit_page
from support.web_server import Visit, run_web_server


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    with run_web_server(str(person_with_one_session(tmp_path).archive)) as visit:
        yield visit


def test_a_link_leads_in_and_a_quiet_page_is_quiet(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit) as seen:
        assert seen.page.get_by_text("Where do herons nest?").is_visible()
        assert (seen.hits(), seen.deeds) == (0, [])


def test_what_a_page_asks_of_others_is_noticed(browser: Browser, visit: Visit) -> None:
    with visit_page(browser, visit, bypass_csp=True) as seen:
        with seen.page.expect_request("**/x.png"):
            seen.page.evaluate("new Image().src = 'http://127.0.0.1:9/x.png'; hit(); confirm('boo')")
        assert seen.hits() == 1
        assert sorted(deed.partition(":")[0] for deed in seen.deeds) == ["dialog", "request"]


def test_what_a_page_complains_of_fails_the_test(browser: Browser, visit: Visit) -> None:
    with pytest.raises(AssertionError, match="inline"), visit_page(browser, visit) as seen:  # noqa: PT012 - it fails at the end
        seen.page.evaluate("document.body.setAttribute('onclick', 'hit()')")
        seen.page.click("main")
        assert seen.hits() == 0
