"""One conversation as a document, as the page and the terminal browser hand it out."""

from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.export.files import write_file
from retold.export.formats.registry import FORMATS, ExportOptions
from retold.export.load import load_document
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person

KEY = "AIza" + "Sy" + "Q6p5O4n3M2l1K0j9I8h7G6f5E4d3C2b1A"
"""Invented, in the form of a key of Google's."""


@pytest.fixture
def record(tmp_path: Path) -> Store:
    home = GeminiHome(tmp_path / "ann")
    said = [user("u1", 1, f"My key is {KEY}."), gemini("g1", 2, f"I will use {KEY}.")]
    home.lines("den", 1, 1, said, kind="main", root="/home/ann/dev/almanac")
    person = Person(home.folder)
    person.sync()
    return Store(str(person.archive))


def key_of(record: Store) -> str:
    return str(next(record.rows("SELECT key FROM sessions"))[0])


@pytest.mark.parametrize("form", FORMATS)
def test_a_document_is_without_secrets_unless_they_are_to_stay(record: Store, form: str) -> None:
    for is_redacted in (True, False):
        made = load_document(record, key_of(record), form, ExportOptions(is_redacted=is_redacted))
        assert made is not None
        assert made.name.endswith(FORMATS[form].suffix)
        assert (KEY.encode() in b"".join(made.pieces)) is not is_redacted


def test_there_is_no_document_of_no_conversation(record: Store) -> None:
    assert load_document(record, "gemini:nothing", "md", ExportOptions()) is None


def test_a_file_is_whole_or_not_there_and_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "told.md"
    assert write_file(str(path), (b"two ", b"pieces")) == 10
    assert path.read_bytes() == b"two pieces"
    assert path.stat().st_mode & 0o077 == 0

    def broken() -> object:
        yield b"half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_file(str(path), broken())  # type: ignore[arg-type]
    assert path.read_bytes() == b"two pieces"
    assert list(path.parent.iterdir()) == [path]
