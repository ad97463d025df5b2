"""The page of one conversation, as it is served."""

import json
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from retold.export.formats.registry import FORMATS
from retold.web.pages.session import FIRST, PAGE
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.web_server import PageResponse, Visit, run_web_server

KEY = "gemini:session-2026-03-01T09-01-00000001"
LONG_KEY = "gemini:session-2026-03-01T09-10-00000002"
SECRET = "AKIAIOSFODNN7EXAMPLE"  # noqa: S105 - of Amazon's own manual
HOSTILE = "<script>hit()</script><img src=x onerror=hit()> [go](javascript:hit())"
ENTRIES = 150


class Read(HTMLParser):
    """What is in a page: ids in order, links, and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self.ids += [given["id"] or ""] if tag == "article" else []
        self.links += [given["href"] or ""] if tag == "a" and "href" in given else []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def link(self, words: str) -> str:
        """The first link to an address with this in it."""
        return next(link for link in self.links if words in link)


def address(path: str, key: str = KEY, **query: object) -> str:
    return f"{path}?key={quote(key, safe='')}" + "".join(f"&{name}={value}" for name, value in query.items())


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    folder = tmp_path_factory.mktemp("ann")
    home = GeminiHome(folder)
    root = folder / "almanac"
    root.mkdir()
    home.mark("den", str(root))
    calls = [
        call("read_file", {"file_path": "reeds.py"}, 2),
        call("run_shell_command", {"command": "cat marsh.txt"}, 2, resultDisplay="m" * 3_000)
        | {
            "result": [
                {
                    "functionResponse": {
                        "name": "x",
                        "response": {"output": "bittern " * 12_500 + "booms at dusk"},
                    }
                }
            ]
        },
    ]
    home.lines(
        "den",
        1,
        1,
        [
            user("u1", 1, "Where do herons nest?"),
            gemini("g1", 2, f"In *reeds*, {HOSTILE}", calls),
            user("u2", 3, "And in winter, with crumbs?"),
            gemini("g2", 4, "They stay near open water."),
            {"$rewindTo": "u2"},
            user("u3", 5, f"And in summer? {HOSTILE}"),
            gemini("g3", 5, f"The key is {SECRET}.", [call("replace", {"file_path": "nest.py"}, 5)]),
        ],
        kind="main",
    )
    said = [
        (user if place % 2 == 0 else gemini)(
            f"m{place}", 10 + place // 10, f"Sentence {place} of the long one."
        )
        for place in range(ENTRIES)
    ]
    said[90]["content"] = "Here a capercaillie calls."
    home.lines("den", 2, 10, said, kind="main")
    home.lines(
        "den",
        3,
        20,
        [
            user("u1", 21, "Mend the nest"),
            gemini("g1", 22, "Done", [call("replace", {"file_path": "nest.py"}, 5)]),
        ],
        kind="main",
    )
    person = Person(folder)
    person.sync()
    return person


@pytest.fixture(scope="module")
def visit(person: Person) -> Iterator[Visit]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        yield visit


def page(visit: Visit, path: str, **headers: str) -> Read:
    answered = visit.get(path, headers)
    assert answered.status == 200, answered.text
    return Read(answered.text)


def test_it_is_told_with_all_that_is_known_of_it(visit: Visit) -> None:
    shown = page(visit, address("/session"))
    assert shown.ids == ["e0", "e1", "e2", "e3", "e4", "e5"]
    for words in (
        "Where do herons nest?",
        "gemini-2.5-pro",
        "2 messages taken back",
        KEY,
        "3 turns",
        "Prompts 3",
    ):
        assert words in shown.text


def test_nothing_that_was_said_becomes_a_part_of_the_page(visit: Visit) -> None:
    text = visit.get(address("/session")).text
    assert "<script>hit" not in text
    assert "<img" not in text
    assert not [link for link in Read(text).links if link.startswith("javascript:")]
    assert "&lt;script&gt;hit()&lt;/script&gt;" in text
    outline = text[text.index('class="turns"') : text.index("</nav>", text.index('class="turns"'))]
    assert "&lt;script&gt;" in outline


def test_no_style_and_no_script_stands_in_the_page_itself(visit: Visit) -> None:
    for path in ("/session", "/session/ledger", "/session/elsewhere", "/session/resume"):
        shown = page(visit, address(path))
        for tag, given in shown.tags:
            assert not [name for name in given if name == "style" or name.startswith("on")], (tag, given)
            assert tag != "style"
            assert tag != "script" or given.get("src", "").startswith("/static/")  # type: ignore[union-attr]


def test_a_turn_that_was_taken_back_stands_behind_a_line_that_says_so(visit: Visit) -> None:
    text = visit.get(address("/session")).text
    branch = text[text.index('<details class="run rewound">') :]
    branch = re.split(r"</article>\s*</details>", branch)[0]
    assert "And in winter" in branch
    assert "open water" in branch
    assert "And in summer" not in branch
    assert branch.count('<span class="fate">taken back</span>') == 2
    assert re.search(r'<li class="taken"><a [^>]*><bdi>And in winter, with crumbs\?', text)


def test_the_active_view_is_what_the_agent_would_load(visit: Visit) -> None:
    shown = page(visit, address("/session", view="active"))
    assert "And in winter" not in shown.text
    assert "And in summer" in shown.text
    assert shown.ids == ["e0", "e1", "e2", "e3"]


def test_a_long_one_comes_in_parts_and_its_links_lead_through_all_of_it(visit: Visit) -> None:
    shown = page(visit, address("/session", LONG_KEY))
    assert shown.ids == [f"e{place}" for place in range(FIRST)]
    seen = list(shown.ids)
    while later := [given["data-first"] for tag, given in shown.tags if tag == "a" and "data-first" in given]:
        shown = page(visit, address("/session/part", LONG_KEY, first=later[0]))
        assert len(shown.ids) <= PAGE
        seen += shown.ids
    assert seen == [f"e{place}" for place in range(ENTRIES)]


def test_it_goes_back_as_well_as_forth(visit: Visit) -> None:
    seen: list[str] = []
    until = ENTRIES
    while until:
        shown = page(visit, address("/session/part", LONG_KEY, until=until))
        seen = shown.ids + seen
        until = int(shown.ids[0][1:])
    assert seen == [f"e{place}" for place in range(ENTRIES)]


def test_links_lead_through_it_without_script(visit: Visit) -> None:
    for attribute, start in (("data-first", 0), ("data-until", ENTRIES - 1)):
        shown = page(visit, address("/session", LONG_KEY, at=start))
        seen = set(shown.ids)
        while further := [
            given["href"] or "" for tag, given in shown.tags if tag == "a" and attribute in given
        ]:
            shown = page(visit, further[0])
            assert not seen.issuperset(shown.ids)
            seen.update(shown.ids)
        assert len(seen) == ENTRIES


@pytest.mark.parametrize("place", [0, 3, 77, ENTRIES - 1])
def test_a_place_in_it_is_there_at_once(visit: Visit, place: int) -> None:
    assert f"e{place}" in page(visit, address("/session", LONG_KEY, at=place)).ids


@pytest.mark.parametrize("place", ["-1", "x", "999999999", "9" * 40, ""])
def test_a_place_that_is_none_does_no_harm(visit: Visit, place: str) -> None:
    assert visit.get(address("/session", LONG_KEY, at=place)).status == 200
    assert visit.get(address("/session/part", LONG_KEY, first=place)).status == 200
    assert visit.get(address("/session/part", LONG_KEY, until=place)).status == 200


@pytest.mark.parametrize(
    "path",
    ["/session", "/session/part", "/session/outline", "/session/state", "/session/call", "/session/export"],
)
def test_a_session_that_there_is_not_is_told_of(visit: Visit, path: str) -> None:
    answered = visit.get(address(path, "gemini:nowhere"))
    assert answered.status == 404
    assert "in the archive" in answered.text


def test_a_long_call_is_sent_when_it_is_opened(visit: Visit) -> None:
    shown = page(visit, address("/session"))
    assert "bittern" not in shown.text
    opened = page(visit, shown.link("/session/call") + "&piece=1")
    assert opened.text.count("bittern") > 1_000
    assert "<html" not in visit.get(shown.link("/session/call") + "&piece=1").text
    assert "To the session" in page(visit, shown.link("/session/call")).text
    assert visit.get(address("/session/call", at=1, call=3)).status == 404
    assert visit.get(address("/session/call", at=99, call=1)).status == 404


def test_what_a_box_leaves_out_is_in_a_file(visit: Visit) -> None:
    opened = page(visit, address("/session/call", at=1, call=2, piece=1))
    whole = visit.get(opened.link("/session/text"))
    assert whole.text.count("bittern") == 12_500
    assert whole.headers["content-disposition"].startswith("attachment")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert opened.text.count("bittern") < 12_500


def test_calls_beside_each_other_are_one_group(visit: Visit) -> None:
    assert '<div class="calls" role="group" aria-label="2 tool calls">' in visit.get(address("/session")).text


def test_what_is_shown_is_chosen_in_the_address_or_as_the_last_time(visit: Visit) -> None:
    def classes(answered: PageResponse) -> set[str]:
        found = re.search(r'<div class="transcript ([^"]*)" data-tools="([^"]*)"', answered.text)
        assert found
        return {*found[1].split(), found[2]}

    assert classes(visit.get(address("/session"))) == {"show-branches", "show-calls", "calls"}
    chosen = visit.get(address("/session", show="thoughts.open"))
    assert classes(chosen) == {"show-thoughts", "show-calls", "open"}
    assert classes(visit.get(address("/session", show="nothing"))) == {"none"}
    assert classes(visit.get(address("/session", show="..x.."))) == {"show-branches", "show-calls", "calls"}
    cookie = f"{visit.cookie}; retold-show=tokens.notices"
    kept = visit.get(address("/session"), {"Cookie": cookie})
    assert classes(kept) == {"show-tokens", "show-notices", "none"}


def test_each_toggle_is_a_link(visit: Visit) -> None:
    shown = page(visit, address("/session"))
    toggled = {given["data-show"]: given["href"] for _, given in shown.tags if "data-show" in given}
    assert set(toggled) == {"thoughts", "branches", "notices", "tokens"}
    assert (
        'class="transcript show-thoughts show-branches show-calls"'
        in visit.get(toggled["thoughts"] or "").text
    )
    assert 'class="transcript show-calls"' in visit.get(toggled["branches"] or "").text


def test_something_is_found_in_it_and_in_it_alone(visit: Visit) -> None:
    found = page(visit, address("/session/find", LONG_KEY, q="capercaillie", piece=1))
    assert [given["data-place"] for _, given in found.tags if "data-place" in given] == ["90"]
    assert "<mark>capercaillie</mark>" in visit.get(address("/session/find", LONG_KEY, q="capercaillie")).text
    assert "e90" in page(visit, found.link("/session")).ids
    assert "is not said" in page(visit, address("/session/find", q="capercaillie")).text


def test_hits_are_in_the_order_of_the_session_with_what_became_of_them(visit: Visit) -> None:
    found = page(visit, address("/session/find", q="in", piece=1))
    places = [int(given["data-place"] or "") for _, given in found.tags if "data-place" in given]
    assert places == sorted(places)
    assert "taken back" in found.text
    output = page(visit, address("/session/find", q="bittern", piece=1))
    assert "run_shell_command" in output.text


def test_a_phrase_is_found_in_output_only_where_it_stands(visit: Visit) -> None:
    assert "1 place" in page(visit, address("/session/find", q="%22booms%20at%20dusk%22", piece=1)).text
    assert "is not said" in page(visit, address("/session/find", q="%22dusk%20booms%22", piece=1)).text


@pytest.mark.parametrize("query", ["%22", "%3Cscript%3Ehit()", "OR", "is:nonsense", "%00", ""])
def test_a_query_that_means_nothing_is_answered_too(visit: Visit, query: str) -> None:
    answered = visit.get(address("/session/find", q=query))
    assert answered.status == 200
    assert "<script>hit" not in answered.text


def test_the_ledger_adds_up(visit: Visit, person: Person) -> None:
    shown = page(visit, address("/session/ledger", LONG_KEY, piece=1))
    total = person.rows()[LONG_KEY]["usage"]["total"]
    assert f"{ENTRIES // 2} requests, {total:,} tokens" in shown.text
    assert shown.text.count("gemini-2.5-pro") == ENTRIES // 2
    assert "100 input x $1.25/M" in shown.text


def test_other_sessions_are_named_with_why(visit: Visit) -> None:
    shown = page(visit, address("/session/elsewhere", piece=1))
    assert "Mend the nest" in shown.text
    assert "changed 1 file of these: nest.py" in shown.text
    assert "same project" in shown.text


def test_a_document_has_no_secrets_unless_they_are_asked_for(visit: Visit) -> None:
    told = visit.get(address("/session/export", format="md"))
    assert told.headers["content-type"] == "text/markdown; charset=utf-8"
    assert told.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert "Where do herons nest?" in told.text
    assert SECRET not in told.text
    assert SECRET in visit.get(address("/session/export", format="md", secrets="keep")).text


@pytest.mark.parametrize("form", [name for name, form in FORMATS.items() if not form.is_binary])
def test_it_is_handed_out_in_every_form(visit: Visit, form: str) -> None:
    told = visit.get(address("/session/export", format=form))
    assert told.status == 200
    assert told.text


def test_a_form_that_there_is_not_is_refused(visit: Visit) -> None:
    assert visit.get(address("/session/export", format="../md")).status == 404


def test_the_way_on_is_told_and_not_taken(
    visit: Visit, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(person.folder))
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    before = sorted(person.sources())
    told = page(visit, address("/session/resume", LONG_KEY, piece=1))
    assert f"cd {person.folder / 'almanac'} && gemini --resume" in told.text
    assert [given for _, given in told.tags if "data-copy" in given]
    assert sorted(person.sources()) == before


def test_where_there_is_no_way_on_it_says_why(visit: Visit) -> None:
    assert "no session gemini:nowhere" in page(visit, address("/session/resume", "gemini:nowhere")).text


def test_how_it_stands_changes_when_it_grows(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "bea")
    file = home.lines("den", 1, 1, [user("u1", 1, "Where do herons nest?")], kind="main")
    person = Person(home.folder)
    person.sync()
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        before = json.loads(visit.get(address("/session/state")).text)
        assert (before["total"], before["fates"]) == (1, {"live": 1})
        assert json.loads(visit.get(address("/session/state")).text) == before
        with file.open("a") as stream:
            stream.write(json.dumps(gemini("g1", 2, "In reeds.")) + "\n")
        person.sync()
        after = json.loads(visit.get(address("/session/state")).text)
        assert (after["total"], after["fates"]) == (2, {"live": 2})
        assert after["stamp"] != before["stamp"]


def test_times_are_those_of_this_machine(visit: Visit) -> None:
    text = unescape(visit.get(address("/session")).text)
    assert 'datetime="2026-03-01T09:01:00+00:00"' in text
    assert " UTC" not in Read(text).text
