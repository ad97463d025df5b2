"""`retold search`: everything that was said is found, and a hit says where it is."""

import gc
import re
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retold.archive.index.reader import Index
from retold.archive.store import Store
from retold.projects.matching import matches_project
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.pages import PageBounds, SearchRequest, load_search_page
from retold.search.query import parse_query
from support.conversation_files import (
    FORMS,
    ROOT,
    Turn,
    as_lines,
    claude,
    claude_key,
    claude_records,
    codex,
    codex_key,
    turns,
    uuid,
    write_file,
)
from support.gemini_home import GeminiHome, at, call, gemini, session_id, user
from support.person import Json, Person

# Every animal of `truth/make_home.py`, where it was planted: session, role, tool, fate -------------------------------

FIRST = "gemini:session-2026-11-10T09-00-aaaaaaaa"
SECOND = "gemini:session-2026-11-12T08-00-bbbbbbbb"
SUBAGENT = f"{SECOND}/beefbeef-2222-4222-8222-222222222222"
THIRD = "gemini:session-2026-11-13T07-00-cccccccc"
FOURTH = "gemini:session-2026-11-14T07-00-eeeeeeee"
LOST = "gemini:lost-dddddddd-0000-4000-8000-000000000000"
CHECKPOINT = "gemini:alpha/checkpoint-mytag"
CLAUDE_ONE, CLAUDE_TWO = (
    "claude:11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
    "claude:22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb",
)
CODEX_ONE, CODEX_TWO = (f"codex:019a0000-0000-7000-8000-00000000000{number}" for number in (1, 2))
Place = tuple[str, str | None, str | None, str]
ANIMALS: dict[str, set[Place]] = {
    # What /compress left behind is compacted: a prompt, a thought, a file and what was read of it, an error, a notice.
    "zanzibar": {
        (FIRST, "user", None, "compacted"),
        (CLAUDE_ONE, "user", None, "live"),
        (CODEX_ONE, "user", None, "live"),
    },
    "quokka": {(FIRST, "assistant", None, "compacted")},
    "narwhal": {(FIRST, "assistant", "read_file", "compacted"), (FIRST, "user", None, "compacted")},
    "wombat": {(FIRST, "assistant", "run_shell_command", "compacted")},
    "platypus": {(FIRST, "system", None, "compacted")},
    "架构": {(FIRST, "assistant", None, "compacted")},
    "ocelot": {(FIRST, "user", None, "live")},
    "aardvark": {(LOST, "user", None, "live")},
    "capybara": {(CHECKPOINT, "user", None, "live")},
    "ibex": {(SECOND, "user", None, "live")},
    # What the parent asked its subagent for, and the subagent's own words.
    "lemur": {
        (SECOND, "assistant", None, "live"),
        (SUBAGENT, "user", None, "live"),
        (SUBAGENT, "assistant", None, "live"),
    },
    "mongoose": {(SECOND, "user", None, "rewound")},
    "pangolin": {(SECOND, "user", None, "live")},
    "kestrel": {(THIRD, "user", None, "live")},
    "marmot": {(THIRD, "user", None, "live")},
    "tapir": {(FOURTH, "user", None, "live")},
    "dingo": {(FOURTH, "assistant", None, "live")},
    "bison": {(FOURTH, "user", None, "live")},
    "moose": {(FOURTH, "assistant", None, "live")},
    "badger": {(CLAUDE_ONE, "assistant", None, "live")},
    "heron": {(CLAUDE_TWO, "user", None, "live")},
    "otter": {(CLAUDE_TWO, "assistant", None, "live")},
    "stoat": {(CODEX_ONE, "assistant", None, "live")},
    "egret": {(CODEX_TWO, "user", None, "live")},
    "weasel": {(CODEX_TWO, "assistant", None, "live")},
}
SUMMARIES = {"capacitor": FIRST, "cursor": SECOND}


@pytest.fixture(scope="module")
def zoo(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Person:
    person = Person(tmp_path_factory.mktemp("zoo") / "home")
    command = [sys.executable, str(shared / "truth" / "make_home.py"), str(person.folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    person.sync()
    return person


def places(found: list[Json]) -> set[Place]:
    return {(one["key"], hit["role"], hit["tool"], hit["fate"]) for one in found for hit in one["hits"]}


@pytest.mark.shared
@pytest.mark.parametrize("word", ANIMALS)
@pytest.mark.parametrize("how", ["words", "--substring", "--regex"])
def test_every_animal_is_found_at_its_place(zoo: Person, word: str, how: str) -> None:
    found = zoo.search(word, *([] if how == "words" else [how]), "--limit", "20")
    said = [place for place in places(found) if place[1:] != (None, None, "live")]
    if how == "words":
        # What went by in a tool's output is looked at where nobody said it.
        assert set(said) <= ANIMALS[word]
        assert {key for key, *_ in said} == {key for key, *_ in ANIMALS[word]}
        tools = {place for place in ANIMALS[word] if place[2]}
        for key, role, tool, fate in tools:
            assert (key, role, tool, fate) in places(zoo.search(word, f"tool:{tool}"))
    else:
        assert set(said) == ANIMALS[word]
    for one in found:
        for hit in one["hits"]:
            assert hit["match"]
            for start, end in hit["match"]:
                assert hit["snippet"][start:end].lower() == word


@pytest.mark.shared
@pytest.mark.parametrize("word", SUMMARIES)
def test_a_summary_is_found(zoo: Person, word: str) -> None:
    assert zoo.keys(word)[0] == SUMMARIES[word]


# Words, phrases and all that --------------------------------------------------------------------------------------


TEXTS = {
    1: "the tide tables drop the time zone",
    2: "a zone without time, and a table",
    3: "Zürich and ZEBRAS; naïve Ångström",
    4: "call parse_time_zone in src/almanac/tide_tables.py with HttpServerError2 and timeZone",
    5: "潮汐表需要修正。请看一下架构。東京タワー",
    6: "don't use --force or std::vector<int>, C++ is fine; e.g. 3.14",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody who said one of the texts in each conversation, oldest first."""
    person = Person(tmp_path_factory.mktemp("reader") / "ann")
    for number, text in TEXTS.items():
        claude(person.folder, number, [Turn(text, f"output{number}", f"answer{number}")])
    codex(
        person.folder,
        7,
        [Turn("asked seven", "went by parse_moon_phase and getMoonPhase in src/sky/moon_phase.rs", "ok")],
    )
    person.sync()
    return person


def numbers(found: list[Json]) -> set[int]:
    return {
        int(one["key"].partition(":")[2].replace("019a0000-0000-7000-8000-", "")[:12].split("-")[0], 16)
        for one in found
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("time zone", {1, 2, 4}),
        ("zone time", {1, 2, 4}),
        ('"time zone"', {1, 4}),
        ('"zone time"', set()),
        ("“time zone”", {1, 4}),
        ("TIME Zone", {1, 2, 4}),
        ("tab*", {1, 2, 4}),
        ('"the time zo"*', {1}),
        ("table", {2}),
        ("zone -tide", {2}),
        ("time -table", {1, 4}),
        ('zone -"time zone"', {2}),
        ("tables OR zebras", {1, 3, 4}),
        ("zone tables OR table", {1, 2, 4}),
        ("zurich", {3}),
        ("ZÜRICH", {3}),
        ("naive angstrom", {3}),
        ("parse_time_zone", {4}),
        ("parse", {4, 7}),
        ("tide_tables", {4, 1}),
        ("tide_tables.py", {4}),
        ("src/almanac", {4}),
        ("almanac/tide_tables.py", {4}),
        ("server", {4}),
        ("http", {4}),
        ("httpservererror2", {4}),
        ("timeZone", {4}),
        ("潮", {5}),
        ("潮汐", {5}),
        ("潮汐表", {5}),
        ("架构", {5}),
        ("構架", set()),
        ("东京", set()),
        ("東京タワー", {5}),
        ("タワー", {5}),
        ("修正 架构", {5}),
        ("don't", {6}),
        ("std::vector", {6}),
        ("--force", {6}),
        ("3.14", {6}),
        ("moon", {7}),
        ("moon_phase", {7}),
        ("getMoonPhase", {7}),
        ("phase", {7}),
        ("moon_phase.rs", {7}),
        ('"parse_moon_phase and"', {7}),
        ("output3", {3}),
        ("nowhere", set()),
    ],
)
def test_words(reader: Person, query: str, expected: set[int]) -> None:
    found = reader.search("--", query)
    assert numbers(found) == expected
    for one in found:
        assert one["hits"]
        assert all(hit["snippet"] for hit in one["hits"])


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("ide tab", {1}),
        ("zebras", {3}),
        ("ZEBRAS", {3}),
        ("Zebras", set()),
        ("汐表需", {5}),
        ("tor<int>,", {6}),
        ("c++", {6}),
        ("TimeZone", set()),
        ("e_moon", {7}),
        ("output", {1, 2, 3, 4, 5, 6}),
        ("ÜRICH", set()),
        ("ürich", {3}),
    ],
)
def test_substrings(reader: Person, letters: str, expected: set[int]) -> None:
    found = reader.search("--substring", letters)
    assert numbers(found) == expected
    for one in found:
        (start, end) = one["hits"][0]["match"][0]
        assert one["hits"][0]["snippet"][start:end].lower() == letters.lower()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("t[ai]\\w+ zone", {1}), ("(?i)zebras?", {3}), ("^a zone", {2}), ("output[12]$", {1, 2}), ("\\bnaïve\\b", {3}), ("x{5}", set())],
)  # fmt: skip
def test_regular_expressions(reader: Person, pattern: str, expected: set[int]) -> None:
    assert numbers(reader.search("--regex", pattern)) == expected


@pytest.mark.parametrize(
    "query", ["00000003", "00000003-3b2d-4f68", "claude:00000003", uuid(3), claude_key(3)]
)
def test_an_id_or_its_start_finds_its_session(reader: Person, query: str) -> None:
    assert reader.keys(query)[0] == claude_key(3)


def test_a_phrase_in_an_output_is_found_only_where_its_words_stand_together(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    for number, output in enumerate(
        ("kestrel over marsh", "kestrel and owl over marsh", "marsh over kestrel"), 1
    ):
        claude(person.folder, number, [Turn("look", output, "done")])
    person.sync()
    assert person.keys('"kestrel over marsh"') == [claude_key(1)]
    assert set(person.keys('"over marsh"')) == {claude_key(1), claude_key(2)}
    assert len(person.keys("kestrel marsh over")) == 3


@pytest.mark.parametrize("field", ["tool:web_fetch", "is:error", "role:system"])
def test_an_id_finds_no_session_in_which_no_message_has_the_field(tmp_path: Path, field: str) -> None:
    person = Person(tmp_path / "ann")
    claude(person.folder, 7, turns("kestrel"))
    person.sync()
    assert person.keys(uuid(7)) == [claude_key(7)]
    assert person.keys(f"{uuid(7)} {field}") == []


def test_a_session_in_which_its_own_id_is_said_is_found_once(tmp_path: Path) -> None:
    person, form = Person(tmp_path), FORMS["claude"]
    for number in (1, 2):
        form.write(person.folder, number, turns(uuid(1)))
    person.sync()
    assert person.keys(uuid(1)) == [form.key(1), form.key(2)]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ('"time zone', 0), ("zone OR", 5), ("OR zone", 0), ("is:purple", 0), ("zone role:nobody", 5), ("after:nonsense zone", 0),
        ("-zone", 0), ("project:", 0), ("zone *", 5),
    ],
)  # fmt: skip
def test_a_query_that_means_nothing_is_shown_where(reader: Person, query: str, place: int) -> None:
    done = reader.run("search", "--json", query)
    assert (done.code, done.out) == (2, "")
    shown, caret = done.err.splitlines()
    assert shown == f"retold: {query}"
    assert caret.index("^") == len("retold: ") + place
    assert len(caret.partition("^ ")[2]) > 10


def test_a_regular_expression_that_is_none_is_shown_where(reader: Person) -> None:
    done = reader.run("search", "--regex", "zone(")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[1].index("^") == len("retold: ") + 4


def test_nothing_found(reader: Person) -> None:
    assert reader.run("search", "nowhere") == (1, "", "retold: nothing found\n")


def test_the_json_form_is_that_of_the_contract(reader: Person) -> None:
    (found,) = reader.search("zebras")
    assert found.keys() == {"key", "title", "project", "ended_at", "score", "hits"}
    assert found["project"].keys() == {"root", "native_key", "hash", "evidence"}
    assert (found["title"], found["project"]["root"], found["score"]) == (TEXTS[3], ROOT, 1.0)
    (hit,) = found["hits"]
    assert hit == {
        "message": hit["message"], "role": "user", "tool": None, "fate": "live", "at": "2026-03-01T09:00:00.000Z",
        "snippet": TEXTS[3], "match": [[11, 17]],
    }  # fmt: skip
    assert hit["message"] == reader.show(found["key"])["timeline"][0]["id"]


def test_the_best_is_first_and_scores_one(reader: Person) -> None:
    found = reader.search("zone")
    scores = [one["score"] for one in found]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert len(reader.search("zone", "--limit", "2")) == 2


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody who said the same words in hundreds of conversations: more than are ever shown."""
    person = Person(tmp_path_factory.mktemp("talker") / "ann")
    for number in range(1, TALKS + 1):
        extra = " tide" * (number % 5)
        again = Turn(f"beacon{extra} again", "the lamp again", "the beacon")
        claude(person.folder, number, [Turn(f"the beacon{extra}", "a lamp", f"beacon number{number}"), again])
    person.sync()
    return person


TALKS = 320


def test_every_conversation_is_found_when_asked_for(talker: Person) -> None:
    expected = {claude_key(number) for number in range(1, TALKS + 1)}
    found = talker.search("beacon", "--limit", "2000")
    assert {one["key"] for one in found} == expected
    assert len(found) == TALKS
    assert talker.search("beacon") == found[:10]
    assert talker.search("beacon", "--limit", "50")[20:] == found[20:50]
    assert set(talker.keys("lamp", "--limit", "2000")) == expected  # in output only
    assert set(talker.keys("lamp tide", "--limit", "2000")) == {
        claude_key(number) for number in range(1, TALKS + 1) if number % 5
    }


def test_a_phrase_in_much_output_is_read_when_more_is_asked_for(talker: Person) -> None:
    few = talker.run("search", "--json", '"lamp again"')
    assert (few.code, len(few.objects), few.err) == (0, 10, "")
    lacking = talker.run("search", "--json", '"again lamp"')
    assert (lacking.code, lacking.out) == (1, "")
    assert "--limit 1000 reads it" in lacking.err
    every = talker.run("search", "--json", '"lamp again"', "--limit", "1000")
    assert (len(every.objects), every.err) == (TALKS, "")
    assert every.objects[:10] == few.objects
    assert talker.run("search", '"again lamp"', "--limit", "1000").err == "retold: nothing found\n"


def test_a_search_leaves_no_connection_to_the_index_behind(talker: Person) -> None:
    with Store(str(talker.archive)) as record:
        index = Index(record, matches_project)
        assert list(Search(record, parse_query("again"), Filters(), index).find(3))
        connections = [weakref.ref(file.connection) for file in index.files]
    del index
    gc.collect()
    assert [connection() for connection in connections] == [None] * len(connections)


def test_pages_of_a_search_follow_each_other(talker: Person) -> None:
    with Store(str(talker.archive)) as record:
        pages = [
            load_search_page(record, SearchRequest("beacon"), PageBounds(first, 80))
            for first in range(0, TALKS, 80)
        ]
        newest = load_search_page(record, SearchRequest("lamp", newest_first=True), PageBounds(0, 8))
    found = [row.summary.key for page in pages for row in page.rows]
    assert found == talker.keys("beacon", "--limit", "2000")
    assert [page.is_last for page in pages] == [False, False, False, True]
    assert (pages[-1].count, pages[-1].is_exact) == (TALKS, True)
    assert (newest.count, newest.is_exact) == (TALKS, True)


# Fields ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody with conversations that differ in all that can be asked for."""
    person = Person(tmp_path_factory.mktemp("worker") / "ann")
    made = GeminiHome(person.folder)
    made.mark("almanac", ROOT)
    made.mark("charts", "/home/ann/dev/sea-charts")
    failed = [
        {
            "functionResponse": {
                "id": "x",
                "name": "run_shell_command",
                "response": {"error": "tide is broken"},
            }
        }
    ]
    made.lines("almanac", 1, 1, [
        user("u1", 1, "about the tide"),
        gemini("g1", 2, "tide answer", [
            call("read_file", {"file_path": f"{ROOT}/tides.py"}, 2),
            call("run_shell_command", {"command": "make"}, 2, status="error", result=failed),
        ]),
        user("u2", 3, "tide, undone"), gemini("g2", 4, "undone answer"), {"$rewindTo": "u2"},
        user("u3", 5, "tide again"), {"id": "e1", "timestamp": at(6), "type": "error", "content": "tide quota exceeded"},
    ])  # fmt: skip
    made.json("charts", 2, 20, [user("u9", 20, "tide on the chart"), {**gemini("g9", 21, "ok"), "model": "gemini-3-flash"}],
              root="/home/ann/dev/sea-charts")  # fmt: skip
    claude(person.folder, 3, [Turn("tide of claude", "tide in output", "done")])
    write_file(
        person.folder / ".claude/projects/-home-ann-dev-almanac" / uuid(3) / "subagents/agent-a1.jsonl",
        as_lines(
            [
                {**record, "isSidechain": True, "agentId": "a1"}
                for record in claude_records(3, turns("tidal pool"))
            ]
        ),
    )
    other = Person(person.folder / "laptop")
    codex(other.folder, 4, [Turn("tide of codex", "x", "done")])
    person.run("sync", "--home", f"laptop={other.folder}")
    person.run("tag", claude_key(3), "+sea")
    return person


G1, G2 = (
    f"gemini:session-2026-03-01T09-{minute}-{session_id(number)[:8]}"
    for minute, number in (("01", 1), ("20", 2))
)
C3, X4 = claude_key(3), codex_key(4)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", {G1, G2, C3, X4}),
        ("agent:gemini", {G1, G2}),
        ("-agent:gemini", {C3, X4}),
        ("project:alma", {G1, C3, X4}),
        ("project:charts", {G2}),
        ("project:/home/ann/dev/sea-charts", {G2}),
        ("model:flash", {G2}),
        ("model:gpt", set()),
        ("file:tides.py", {G1}),
        ("status:success", {G2, C3, X4}),
        ("-status:success", {G1}),
        ("tag:sea", {C3}),
        ("-tag:sea", {G1, G2, X4}),
        ("home:laptop", {X4}),
        ("after:2026-03-01T09:15", {G2}),
        ("before:2026-02-28", set()),
        ("before:2026-03-01", {G1, G2, C3, X4}),
        ("after:7d", set()),
        ("tool:run_shell_command", {G1}),
        ("tool:shell_exec", {G1, C3}),
        ("tool:Bash", {C3}),
        ("role:user", {G1, G2, C3, X4}),
        ("role:assistant", {G1, C3}),
        ("role:system", {G1}),
        ("is:error", {G1}),
        ("is:rewound", {G1}),
        ("is:live -is:error", {G1, G2, C3, X4}),
        ("is:compacted", set()),
        ("agent:gemini project:alma is:rewound", {G1}),
        ("-project:alma agent:gemini", {G2}),
    ],
)
def test_fields(worker: Person, fields: str, expected: set[str]) -> None:
    assert set(worker.keys(f"tide {fields}".strip())) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--agent", "gemini"], {G1, G2}),
        (["--project", "charts"], {G2}),
        (["--model", "flash"], {G2}),
        (["--tool", "shell_exec"], {G1, C3}),
        (["--file", "tides.py"], {G1}),
        (["--role", "system"], {G1}),
        (["--status", "interrupted"], {G1}),
        (["--tag", "sea"], {C3}),
        (["--home", "laptop"], {X4}),
        (["--since", "2026-03-01T09:15"], {G2}),
        (["--until", "2026-02-28"], set()),
    ],
)
@pytest.mark.parametrize("how", [[], ["--substring"]], ids=["words", "letters"])
def test_filters(worker: Person, how: list[str], arguments: list[str], expected: set[str]) -> None:
    assert set(worker.keys("tide", *how, *arguments)) == expected


@pytest.mark.parametrize(
    ("query", "places_of_hits"),
    [
        ("tide is:error", {("run_shell_command", "live"), (None, "live")}),
        ("tide is:rewound", {(None, "rewound")}),
        ("tide tool:run_shell_command role:assistant", {("run_shell_command", "live"), (None, "live")}),
        ("tide role:system", {(None, "live")}),
    ],
)
def test_a_field_chooses_the_hits_too(
    worker: Person, query: str, places_of_hits: set[tuple[str | None, str]]
) -> None:
    (found,) = worker.search(query)
    assert found["key"] == G1
    assert {(hit["tool"], hit["fate"]) for hit in found["hits"]} <= places_of_hits


def test_a_subagent_is_found_as_one(worker: Person) -> None:
    assert worker.keys('"tidal pool"') == worker.keys("pool is:subagent") == [f"{C3}/a1"]


def test_a_field_alone_lists_what_it_means(worker: Person) -> None:
    assert set(worker.keys("agent:gemini")) == {G1, G2}
    assert worker.keys("tag:sea") == [C3]


# What a terminal must not see ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [["beacon"], ["--substring", "beacon"], ["--regex", "b.acon"]], ids=" ".join)
def test_control_characters_are_pictures(tmp_path: Path, how: list[str]) -> None:
    person = Person(tmp_path / "ann")
    for number, form in enumerate(FORMS.values(), 1):
        form.write(
            person.folder,
            number,
            [Turn("a \x1b[31mbeacon\x1b[0m \x07\x9b2J", "\x1b]0;beacon\x07", "beacon\x08\x7f\u202e")],
        )
    person.sync()
    for arguments in (["search", *how], ["search", *how, "--json"], ["list"], ["show", claude_key(3)]):
        done = person.run(*arguments)
        assert done.code == 0
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.out)
    assert "␛[31mbeacon" in person.run("search", "beacon").out
    for found in person.search(*how):
        for hit in found["hits"]:
            assert [hit["snippet"][start:end] for start, end in hit["match"]] == ["beacon"]


# Any word -----------------------------------------------------------------------------------------------------------

WORD = st.text(st.sampled_from("abcxyzäßéфя東京潮ก0189_-/.ABC'"), min_size=1, max_size=12)
TALK = st.lists(
    st.tuples(st.lists(WORD, min_size=1, max_size=6), st.lists(WORD, max_size=6)), min_size=1, max_size=3
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(talks=st.lists(TALK, min_size=1, max_size=4), data=st.data())
def test_any_word_finds_a_session_that_holds_it(
    tmp_path_factory: pytest.TempPathFactory,
    talks: list[list[tuple[list[str], list[str]]]],
    data: st.DataObject,
) -> None:
    person = Person(tmp_path_factory.mktemp("any") / "ann")
    said: dict[str, set[str]] = {}
    forms = list(FORMS.values())
    for number, talk in enumerate(talks):
        form = forms[number % len(forms)]
        told = [Turn(" ".join(prompt), " ".join(output) or "nothing", "ok") for prompt, output in talk]
        form.write(person.folder, number, told)
        for prompt, output in talk:
            for word in (*prompt, *output):
                said.setdefault(word, set()).add(form.key(number))
    person.sync()
    for word in data.draw(st.lists(st.sampled_from(sorted(said)), min_size=1, max_size=4)):
        if re.search(r"\w", word.replace("_", "")):
            quoted = f'"{word}"' if word.startswith("-") else word
            assert {*person.keys("--limit", "50", "--", quoted)} >= said[word]
        assert {*person.keys("--limit", "50", "--substring", "--", word)} >= said[word]
