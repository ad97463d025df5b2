"""Resources and prompts: what is offered, how much of it is told, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from syrupy.assertion import SnapshotAssertion

from retold.mcp.prompts import BUDGET, PROMPTS, PromptOffer
from retold.mcp.reply import MOST
from retold.mcp.resources import PAGE, session_uri
from support.gemini_home import ROOT, GeminiHome, gemini, user
from support.mcp_client import McpClient, connect, connect_person
from support.token_budget import tokens

KEY = "gemini:session-2026-03-01T09-00-00000001"
ODD = "session-2026-03-01T09-59-a b%2F ü?#&"
COUNT = 55


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    """Many conversations: one is long, and one has a file with an odd name."""
    home = GeminiHome(tmp_path_factory.mktemp("resources") / "ann")
    home.mark("almanac", ROOT)
    long = [
        user("a1", 0, "Count the herons"),
        gemini("a2", 1, "heron\n" * 15_000),
        gemini("a3", 2, "the end"),
    ]
    home.json("almanac", 1, 0, long)
    for number in range(2, COUNT):
        home.json("almanac", number, number, [user(f"u{number}", number, f"Question {number}?")])
    odd = home.json("almanac", COUNT, 55, [user("z", 55, "An odd name")])
    odd.rename(odd.with_name(f"{ODD}.json"))
    with connect(home.folder) as found:
        yield found


def test_all_conversations_are_listed_page_by_page(ann: McpClient) -> None:
    first = ann.said(lambda client: client.list_resources())
    second = ann.said(lambda client: client.list_resources(cursor=first.next_cursor))
    assert first.next_cursor == str(PAGE)
    assert (len(first.resources), len(second.resources), second.next_cursor) == (PAGE + 1, COUNT - PAGE, None)
    found = [one.uri for one in (*first.resources, *second.resources)]
    assert len(set(found)) == COUNT + 1
    assert found[-1] == session_uri(KEY)
    assert all(one.mime_type == "text/markdown" for one in first.resources)


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 30, "٣"])
def test_a_cursor_that_is_none_is_refused(ann: McpClient, cursor: str) -> None:
    with pytest.raises(MCPError) as found:
        ann.said(lambda client: client.list_resources(cursor=cursor))
    assert found.value.code == types.INVALID_PARAMS


def test_every_listed_address_can_be_read(ann: McpClient) -> None:
    for resource in ann.said(lambda client: client.list_resources()).resources:
        assert ann.read(resource.uri).body


def test_odd_characters_of_a_key_survive_in_its_address(ann: McpClient) -> None:
    uri = session_uri(f"gemini:{ODD}")
    assert uri == "retold://session/gemini%3Asession-2026-03-01T09-59-a%20b%252F%20%C3%BC%3F%23%26"
    assert "An odd name" in ann.read(uri).body


def test_a_long_conversation_ends_with_how_to_read_on(ann: McpClient) -> None:
    told = ann.read(session_uri(KEY))
    assert MOST - 500 < tokens(told.text) <= MOST
    assert told.text.endswith(f'call read_session with the key of this session and cursor "{told.next}".')
    pages = ann.pages("read_session", session=KEY, budget=MOST)
    assert pages[0].quotes == told.quotes
    assert "\n".join(page.quotes for page in pages).count("heron") == 15_000 + 2
    assert pages[-1].quotes.endswith("the end")


@pytest.mark.parametrize(
    "uri",
    ["retold://session/", "retold://session/nope", "retold://session/%ff%00", "retold://x", "file:///etc/passwd", "",
     "retold://session/" + "a" * 5000],
)  # fmt: skip
def test_what_is_no_resource_is_refused(ann: McpClient, uri: str) -> None:
    with pytest.raises(MCPError) as found:
        ann.read(uri)
    assert found.value.code == types.INVALID_PARAMS
    assert len(found.value.message) < 500


def test_prompts_say_what_they_take(ann: McpClient) -> None:
    offered = ann.said(lambda client: client.list_prompts()).prompts
    told = {one.name: {arg.name: arg.required for arg in one.arguments or ()} for one in offered}
    assert told == {
        "continue_from": {"session": True},
        "retrospective": {"since": False, "project": False},
        "hand_over": {"session": True},
    }
    assert all(arg.description for one in offered for arg in one.arguments or ())


@pytest.mark.parametrize("offer", PROMPTS, ids=lambda offer: offer.name)
def test_a_prompt_is_our_words_and_then_the_history_within_a_budget(
    ann: McpClient, offer: PromptOffer
) -> None:
    told = ann.prompted(offer.name, **({"session": KEY} if "session" in offer.arguments else {}))
    assert told.text.startswith(f"{offer.instruction}\n\nQuoted history from past conversations follows.")
    assert tokens(told.text) <= BUDGET + tokens(offer.instruction)
    is_long = "session" in offer.arguments
    assert told.text.endswith("This is not all of it: read_session and recent_work tell the rest.") is is_long
    assert "Count the herons" in told.body or "Question" in told.body


def test_a_hand_over_tells_what_a_conversation_came_to(
    tmp_path_factory: pytest.TempPathFactory, snapshot: SnapshotAssertion
) -> None:
    home = GeminiHome(tmp_path_factory.mktemp("short") / "ann")
    home.mark("almanac", ROOT)
    talk = [[user(f"u{n}", n, f"Prompt {n}"), gemini(f"g{n}", n, f"Answer {n}")] for n in range(1, 6)]
    home.json("almanac", 1, 0, [one for pair in talk for one in pair])
    with connect(home.folder) as ben:
        assert ben.prompted("hand_over", session=KEY).body == snapshot


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nothing", {}),
        ("continue_from", {}),
        ("continue_from", {"session": ""}),
        ("continue_from", {"session": "nope"}),
        ("hand_over", {"session": "x" * 5000}),
        ("hand_over", {"session": "\ud800"}),
        ("hand_over", {"session": KEY, "budget": "5"}),
        ("hand_over", {"session": KEY, "\x1b[2J": "5"}),
        ("retrospective", {"since": "the day before"}),
        ("retrospective", {"since": "9" * 39}),
        ("retrospective", {"cursor": "1.0"}),
    ],
)
def test_wrong_arguments_of_prompts_are_refused(ann: McpClient, name: str, arguments: dict[str, str]) -> None:
    with pytest.raises(MCPError) as found:
        ann.prompted(name, **arguments)
    assert found.value.code == types.INVALID_PARAMS
    assert "Traceback" not in found.value.message
    assert "\x1b" not in found.value.message


def test_completion_tells_keys_for_prompts_too(ann: McpClient) -> None:
    ref = types.PromptReference(name="hand_over")
    told = ann.said(lambda client: client.complete(ref, {"name": "session", "value": KEY[:-1]})).completion
    assert told.values == [KEY]
    assert ann.said(lambda client: client.complete(ref, {"name": "x", "value": ""})).completion.values == []


def test_without_an_archive_everything_says_what_to_do(tmp_path: Path) -> None:
    with connect_person(str(tmp_path / "none")) as ben:
        with pytest.raises(MCPError, match="retold sync"):
            ben.said(lambda client: client.list_resources())
        with pytest.raises(MCPError, match="retold sync"):
            ben.read("retold://project")
        with pytest.raises(MCPError, match="retold sync"):
            ben.prompted("retrospective")
        assert "retold sync" in ben.ask("recent_work").text
