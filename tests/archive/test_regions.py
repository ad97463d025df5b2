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
    assert finder.pages() == []


def test_many_versions_are_looked_through_in_linear_time() -> None:
    def prepare(size: int) -> Callable[[], object]:
        finder, held = TextLocator(originals(size)), range(size)
        said = list(
            make_documents(session(*(user(number + 1, f"only in version {number}.") for number in held)))
        )
        return lambda: [finder.locate(spoken) for spoken in said]

    assert_linear(prepare, 400)
