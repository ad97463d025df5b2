"""Where texts stand in the originals of a session."""

import json
from collections.abc import Callable

from retold.archive.index.documents import TextLocator, make_documents
from support.full_session import session, user
from support.step_counter import assert_linear

WORDS = "heron otter plover dunlin bittern"


def originals(size: int) -> list[tuple[int, bytes]]:
    """Return versions of a file, each with a text of its own behind those that all have."""
    common = [f"{WORDS} {number}" for number in range(4)]
    return [(number, json.dumps([*common, f"only in version {number}."]).encode()) for number in range(size)]


def test_a_text_of_any_version_is_found() -> None:
    held = originals(30)
    finder = TextLocator(held)
    said = session(*(user(number + 1, f"only in version {number}.") for number in range(30)))
    for number, spoken in enumerate(make_documents(said)):
        (regions,) = finder.locate(spoken)
        place, start, size = (int(part, 16) for part in regions.split()[0].split("."))
        assert place == number
        assert held[place][1][start : start + size] == f"only in version {number}.".encode()
    assert finder.take_pages(is_end=True) == []


def test_a_text_in_json_within_json_is_found() -> None:
    """Codex CLI writes the arguments of a call, and earlier versions also its output, as a string of JSON."""
    words = f'grep "{WORDS}"\n\\d+\tü'
    inner = json.dumps({"command": words}, ensure_ascii=False)
    data = json.dumps({"arguments": inner}, ensure_ascii=False).encode()
    finder = TextLocator([(0, data)])
    (spoken,) = make_documents(session(user(1, words)))
    (regions,) = finder.locate(spoken)
    _, start, size, nesting = regions.split()[0].split(".")
    raw = data[int(start, 16) :][: int(size, 16)].decode()
    once = json.loads(f'"{raw}"')
    assert (json.loads(f'"{once}"'), nesting) == (words, "2")
    assert finder.take_pages(is_end=True) == []


def test_texts_that_are_nowhere_hide_no_others() -> None:
    """A reader composes some texts, as diffs of lines; each is searched in the whole original."""
    texts = [f"{WORDS} {WORDS} {WORDS} {number}" for number in range(400)]
    composed = [f"composed of several lines: {text}" for text in texts]
    data = json.dumps([f"{'x' * 2000} {text}" for text in texts]).encode()
    finder = TextLocator([(0, data)])
    pairs = zip(composed, texts, strict=True)
    said = session(*(user(number, text) for pair in pairs for number, text in enumerate(pair, 1)))
    found = [regions for spoken in make_documents(said) for regions in finder.locate(spoken)]
    assert [regions.startswith("-") for regions in found] == [True, False] * len(texts)


def test_many_versions_are_looked_through_in_linear_time() -> None:
    def prepare(size: int) -> Callable[[], object]:
        finder, held = TextLocator(originals(size)), range(size)
        said = list(
            make_documents(session(*(user(number + 1, f"only in version {number}.") for number in held)))
        )
        return lambda: [finder.locate(spoken) for spoken in said]

    assert_linear(prepare, 400)
