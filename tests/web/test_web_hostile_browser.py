"""Transcripts that were written to do harm, on every page that there is: nothing runs, loads or leads anywhere by itself."""

import os
from collections.abc import Iterator, Mapping
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from retold.archive.store import Store
from retold.search.filters import Filters
from retold.search.listing import list_sessions
from retold.web.pages import PAGES
from support.chromium import NARROW
from support.gemini_home import GeminiHome, call, gemini, user
from support.hostile_texts import SHORT
from support.person import Person
from support.web_page import visit_page
from support.web_server import Visit, run_web_server

ALL = "\n\n".join(SHORT)
ROOT = "/home/ann/</script><img src=x onerror=hit()>"


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody whose every conversation says nothing but harm, in all places that one has."""
    home = GeminiHome(tmp_path_factory.mktemp("hostile") / "ann")
    home.mark("den", ROOT)
    for number, text in enumerate([*SHORT, ALL], start=1):
        home.lines("den", number, number, harmful(text, number), kind="main", summary=text)
    person = Person(home.folder)
    person.sync()
    return person


def harmful(text: str, number: int) -> list[dict[str, object]]:
    calls = [
        call("write_file", {"file_path": f"{ROOT}/{text}", "content": text}, 2, resultDisplay=text),
        call(text[:200] or "x", {text: text}, 2, id=f"c{number}", status="error", resultDisplay=text, description=text),
        call("run_shell_command", {"command": text}, 2, id=f"s{number}", displayName=text),
    ]  # fmt: skip
    return [
        user("u1", 1, text),
        gemini("g1", 2, text, calls) | {"model": text, "thoughts": [{"subject": text, "description": text}]},
        {"id": "e1", "type": "error", "timestamp": "2026-03-01T09:03:00.000Z", "content": text},
        user("u2", 4, text),
    ]


@pytest.fixture(scope="module")
def visit(ann: Person) -> Iterator[Visit]:
    with patch.dict(os.environ, ann.env), run_web_server(str(ann.archive)) as visit:
        visit.enter()
        yield visit


def parameters(keys: list[str]) -> Iterator[Mapping[str, str]]:
    """Yield what pages may be asked, those that know nothing of a name pass it over."""
    yield {}
    for text in (SHORT[0], SHORT[1], ALL[-150:]):
        words = (
            "q",
            "project",
            "path",
            "file",
            "name",
            "tool",
            "model",
            "agent",
            "by",
            "sort",
            "from",
            "since",
            "until",
        )
        yield dict.fromkeys(words, text)
    yield {"q": "hit"}
    yield {"q": "hit", "piece": "1"}
    yield {"project": ROOT, "path": f"{ROOT}/x"}
    for key in keys:
        yield {"key": key}
        yield {"key": key, "piece": "1", "at": "0"}
        yield {"key": key, "at": "1", "view": "full", "thoughts": "1", "notices": "1"}
    yield {"key": SHORT[0]}


def test_every_page_is_quiet_whatever_was_said(browser: Browser, visit: Visit, ann: Person) -> None:
    with Store(str(ann.archive)) as record:
        keys = [str(row[0]) for row in list_sessions(record, Filters(), 100)]
    assert len(keys) == len(SHORT) + 1
    count = 0
    with visit_page(browser, visit, NARROW) as seen:
        for path in (page.path for page in PAGES if not page.is_post):
            for asked in parameters([keys[0], keys[1], keys[-1]]):
                address = f"{path}?{urlencode(asked)}"
                answered = visit.get(address)
                assert answered.status in (200, 303, 400, 404), (address, answered.status)
                if answered.status == 200 and "content-disposition" not in answered.headers:
                    seen.page.goto(f"http://{visit.host}{address}")
                    seen.unfold()
                    seen.page.evaluate(
                        "document.querySelectorAll('*').forEach(one => one.dispatchEvent(new Event('mouseover')))"
                    )
                    assert (seen.hits(), seen.deeds) == (0, []), address
                    count += 1
    assert count >= len([page for page in PAGES if not page.is_post])
