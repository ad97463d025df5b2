"""Every example of a query, wherever people and agents read it, finds something in the demo."""

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

import pytest

from retold.cli.commands import browse, search
from retold.cli.commands.demo import EXAMPLES
from retold.mcp.tools import TOOLS
from retold.search.filters import ALIASES
from retold.search.listing import FolderScope
from retold.search.query import FIELDS
from retold.search.quick_find import match_titles
from retold.tui import dialogs as browser_help
from retold.tui.data import ArchiveQueries, load_titles
from support.demo_person import DemoPerson
from support.person import Person
from support.web_server import run_web_server

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
ABOUT_SEARCH = ("search.md", "browse.md", "web.md", "mcp.md")
README_HOME = ROOT / "tests/fixtures/home"
"""The home of the commands in README whose output stands there."""
COMMANDS = {"search": search, "browse": browse}

_FIELD = rf'-?(?:{"|".join((*FIELDS, *ALIASES))}):(?:"[^"]+"|[\w./-]*\w)'
_PHRASE = r'["“]\w+(?: \w+)*["”]'
_MARKED = rf"{_FIELD}|{_PHRASE}|[a-z]+\*|[a-z]+ OR [a-z]+|[a-z]+ -[a-z]{{3,}}"
"""What makes words a query: a field, a phrase, a star, an OR or a minus."""
_EXAMPLE = re.compile(rf"(?<![\w:./])(?:{_MARKED})")
_QUERY = re.compile(rf"(?:[a-z]+ )*(?:{_MARKED})(?: (?:{_MARKED}|-?[a-z]+))*")
_WITH_FIELD = re.compile(_FIELD)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_COMMAND = re.compile(r"retold (search|browse) ([^`\n#]+)")
_PYTHON = re.compile(r'archive\.search\("([^"]+)"')
_SLIPS = re.compile(r"one slip \(`(\w+)`\) or letters left out\s+\(`(\w+)`\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_DEMO = "retold demo"
_PLACEHOLDER = re.compile(r'placeholder="([^"]*)"')

Example = tuple[str, ...]
"""A command and what is typed behind it."""


def plain_examples(text: str) -> list[Example]:
    """Return the examples in a text without marks for code."""
    return [("search", found[0]) for found in _EXAMPLE.finditer(text)]


def commands(text: str) -> Iterator[Example]:
    """Yield the searches that are typed in a text, but for those with a name in place of an argument, as QUERY."""
    for name, typed in _COMMAND.findall(_COMMENT.sub("", text)):
        words = search.escape_dashes(_without_home(shlex.split(typed)))
        if words and not any(re.fullmatch(r"\[?[A-Z]{2,}\]?.*", word) for word in words):
            parser = ArgumentParser()
            COMMANDS[name].add_arguments(parser)
            yield "search" if parser.parse_args(words).query else "list", *words


def _without_home(words: Sequence[str]) -> list[str]:
    """Return the words of a command, but for the label of a home: the demo has no second one."""
    label = words.index("--home") if "--home" in words else len(words)
    return [*words[:label], *words[label + 2 :]]


def page_examples(text: str, *, is_about_search: bool = True) -> list[Example]:
    """Return the examples on a page of Markdown: commands, searches in Python, and queries between backticks.

    On a page about something else a query has a field: `ls -l` is none.
    """
    spans = [span.replace("\\|", "|") for span in _SPAN.findall(_BLOCK.sub("", text))]
    queries = [span for span in spans if _QUERY.fullmatch(span)]
    if not is_about_search:
        queries = [query for query in queries if _WITH_FIELD.search(query)]
    return [*commands(text), *(("search", query) for query in [*_PYTHON.findall(text), *queries])]


def help_examples(person: DemoPerson) -> list[Example]:
    shown = "\n".join(person.run(name, "--help").out for name in COMMANDS)
    return plain_examples(" ".join(shown.split()))


def schema_examples() -> list[Example]:
    return [
        one
        for tool in TOOLS
        for told in (tool.about, *descriptions(tool.schema()))
        for one in plain_examples(told)
    ]


def descriptions(schema: object) -> Iterator[str]:
    """Yield every description in a JSON Schema."""
    if isinstance(schema, dict):
        yield from [schema["description"]] if isinstance(schema.get("description"), str) else ()
        yield from (told for value in schema.values() for told in descriptions(value))


def web_examples(person: DemoPerson) -> list[Example]:
    with run_web_server(str(person.archive)) as visit:
        visit.enter()
        page = visit.get("/").text
    return plain_examples("\n".join(map(unescape, _PLACEHOLDER.findall(page))))


def browser_examples() -> list[Example]:
    return plain_examples("\n".join(told for _, told in browser_help.KEYS))


def docs_examples() -> list[Example]:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    found = [
        page_examples(page.read_text(encoding="utf-8"), is_about_search=page.name in ABOUT_SEARCH)
        for page in pages
    ]
    return [one for examples in found for one in examples]


def readme_examples() -> list[Example]:
    """Return the examples in README that are about the demo: those outside of blocks, and in the block that starts it."""
    text = README.read_text(encoding="utf-8")
    return page_examples(
        "\n".join([_BLOCK.sub("", text), *(one for one in _BLOCK.findall(text) if _DEMO in one)])
    )


def readme_block_examples() -> list[Example]:
    """Return the examples in the other blocks of README: their output is that of README's own home, and stands below them."""
    blocks = _BLOCK.findall(README.read_text(encoding="utf-8"))
    return page_examples("\n".join(block for block in blocks if _DEMO not in block))


def demo_examples() -> list[Example]:
    return [one for command, _ in EXAMPLES for one in commands(command)]


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> DemoPerson:
    return DemoPerson(tmp_path_factory.mktemp("examples"))


def missed(person: Person, examples: Sequence[Example]) -> list[Example]:
    """Return the examples that find nothing."""
    return [one for one in dict.fromkeys(examples) if person.run(*one, "--json").code != 0]


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        ("help", "tool:shell"),
        ("tool schemas", "tool:shell"),
        ("page", "tool:shell"),
        ("browser", "tool:shell"),
        ("docs", "tool:shell"),
        ("README", "tool:shell"),
        ("demo", "time zone bug"),
    ],
)
def test_every_example_query_finds_something_in_the_demo(
    person: DemoPerson, surface: str, expected: str
) -> None:
    collect = {
        "help": lambda: help_examples(person),
        "tool schemas": schema_examples,
        "page": lambda: web_examples(person),
        "browser": browser_examples,
        "docs": docs_examples,
        "README": readme_examples,
        "demo": demo_examples,
    }
    examples = collect[surface]()
    assert ("search", expected) in examples
    assert missed(person, examples) == []


def test_the_titles_with_slips_are_found(person: DemoPerson) -> None:
    page = (ROOT / "docs/browse.md").read_text(encoding="utf-8")
    typed = _SLIPS.search(page)
    assert typed is not None
    known = load_titles(ArchiveQueries(str(person.archive)), FolderScope(""))
    for slip in typed.groups():
        assert any(match_titles(known, slip)), slip


def test_every_example_in_a_block_of_readme_finds_something_in_its_home(tmp_path: Path) -> None:
    person = Person(README_HOME, tmp_path / "retold")
    person.sync()
    examples = readme_block_examples()
    assert ("search", "tide") in examples
    assert missed(person, examples) == []


def test_an_example_that_finds_nothing_is_noticed(person: DemoPerson) -> None:
    page = "Try `tool:nope`, `retold search nosuchword`, `sensor -oven`, or `retold search QUERY --json`."
    assert missed(person, page_examples(page)) == [("search", "nosuchword"), ("search", "tool:nope")]
    assert [query for _, query in plain_examples('words, "a phrase", x* and project:name, one -two')] == [
        '"a phrase"',
        "x*",
        "project:name",
        "one -two",
    ]
    assert ("search", "one -nosuch") in page_examples("Leave words out: `one -nosuch`.")
    assert page_examples("`ls -l`, `tool:x` and `role:user -pear`", is_about_search=False) == [
        ("search", "tool:x"),
        ("search", "role:user -pear"),
    ]
