"""The steps of transcripts and of marks in search results grow with the text and with the number of messages."""

from collections.abc import Callable

import pytest

from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Text
from retold.search.query import parse_query
from retold.search.results import find_highlights, make_snippet
from support.dialogue_sessions import assistant, call, export_session, user
from support.step_counter import assert_linear

CRUMBS = ("```\n", "> ", "* a\n", "[a](", "<a ", "| a |\n", "**a ", "`a", "\\", "http://a ", "a\n\n")
FORMS = pytest.mark.parametrize("form", ["md", "html", "share-md", "chat", "csv", "atif"])


def written(form: str, telling: ExportSession) -> Callable[[], object]:
    encode = FORMATS[form].encode
    return lambda: list(encode(iter([telling]), ExportOptions(thoughts=True, notices=True)))


@FORMS
def test_a_long_text_is_written_in_linear_time(form: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        texts = [f"{crumb * size}\nThe tide.\n{'Tide. ' * size}" for crumb in CRUMBS]
        told = [entry for text in texts for entry in (user(text), assistant(Text(text), call(result=text)))]
        lines = user("Tide.\n" * size)
        return written(form, export_session(*told, lines, *map(user, ["Tide."] * size)))

    assert_linear(prepare, 60)


@FORMS
def test_many_messages_and_calls_are_written_in_linear_time(form: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        entries = [
            entry
            for number in range(size)
            for entry in (
                user("How high?", number, id=f"u{number}"),
                assistant(Text("High."), call(id=f"c{number}"), minute=number, id=f"a{number}"),
            )
        ]
        many = assistant(*(call(id=f"m{number}") for number in range(size)))
        return written(form, export_session(*entries, many))

    assert_linear(prepare, 60)


@pytest.mark.parametrize("query", ["tide", "ti*", '"tide tide"', "tide harbour", "\u6f6e"])
@pytest.mark.parametrize("crumb", ["tide ", "tideTide", "tide-", "tide\n\n", "\u6f6e", "harbour tide "])
def test_marks_are_found_in_linear_time(query: str, crumb: str) -> None:
    asked = parse_query(query)

    def prepare(size: int) -> Callable[[], object]:
        text = f"{'No. ' * size}{crumb * size}"

        def work() -> None:
            make_snippet(text, find_highlights(text, asked))
            for _ in range(size):  # C code does most of the rest, which is not counted
                parse_query("tide")

        return work

    assert_linear(prepare, 100)
