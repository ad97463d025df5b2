"""Documentation that cannot lie: generated pages are fresh, examples run, links lead somewhere."""

import doctest
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import retold
from retold.agents.gemini.tool_calls import TOOLS
from retold.agents.protocol import Agent
from retold.agents.registry import AGENTS
from retold.cli.main import COMMANDS
from retold.maintenance.doctor.checks import CODES as FINDINGS
from retold.model.problem import CODES
from support.synced_archive import sync_archive

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HOME = ROOT / "tests" / "fixtures" / "home"
"""Whose archive the examples ask."""
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
_FENCE = re.compile(r"^(```+)(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SECTIONS = re.compile(r"`(docs/[\w./-]+\.md)`, sections? ([\d., and]*\d)")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Return the names under which GitHub links to a page's headings."""
    headings = _HEADING.findall(_FENCE.sub("", text_of(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for target in _LINK.findall(_FENCE.sub("", text_of(page))):
            if not re.match(r"[a-z]+:", target):
                yield name_of(page), target


def cited_sections() -> Iterator[tuple[str, str, str]]:
    for module in sorted((ROOT / "src").rglob("*.py")):
        for page, numbers in _SECTIONS.findall(text_of(module)):
            for number in re.findall(r"\d+(?:\.\d+)*", numbers):
                yield name_of(module), page, number


def examples(text: str, name: str) -> Iterator[doctest.DocTest]:
    """Yield the Python examples of a page as one test, in order: later ones may use earlier names."""
    blocks = [block for _, language, block in _FENCE.findall(text) if language == "python"]
    yield doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)


def test_generated_pages_are_fresh() -> None:
    script = ROOT / "scripts" / "generate_docs.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    assert f"\n## retold {name}\n" in text_of(DOCS / "reference" / "cli.md")
    assert f"`retold {name} " in text_of(ROOT / "README.md")


@pytest.mark.parametrize("code", CODES)
def test_every_problem_code_is_documented(code: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", code)
    assert f"\n| `{code}` | {CODES[code].severity} | {CODES[code].meaning} |" in text_of(
        DOCS / "reference" / "problems.md"
    )


@pytest.mark.parametrize("code", FINDINGS)
def test_every_finding_is_documented_and_made_in_a_test(code: str) -> None:
    assert f"\n| `{code}` | {FINDINGS[code]} |" in text_of(DOCS / "reference" / "findings.md")
    tests = (
        ROOT / "tests" / "maintenance" / "test_doctor.py",
        ROOT / "tests" / "synchronization" / "test_isolation.py",
    )
    assert any(f'"{code}"' in text_of(test) for test in tests)


@pytest.mark.parametrize("name", retold.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    page = text_of(DOCS / "reference" / "library.md")
    assert f"retold.{name}" in page if name == "__version__" else f"\n## {name}\n" in page


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_is_documented(name: str) -> None:
    assert f"\n| `{name}` | `{TOOLS[name]}` |" in text_of(DOCS / "reference" / "tools.md")


@pytest.mark.parametrize("name", AGENTS)
def test_the_format_of_every_agent_is_documented(name: str) -> None:
    assert f"formats/{name}.md" in text_of(DOCS / "README.md")


@pytest.mark.parametrize("name", [name for name in vars(Agent) if not name.startswith("_")])
def test_every_function_of_an_agent_is_explained(name: str) -> None:
    assert f"**`{name}(" in text_of(ROOT / "CONTRIBUTING.md")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_every_page_can_be_reached_from_the_index(page: Path) -> None:
    index = DOCS / "README.md"
    assert page == index or f"({page.relative_to(DOCS).as_posix()})" in text_of(index)


@pytest.mark.parametrize(("page", "target"), list(links()))
def test_links_lead_somewhere(page: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    found = (ROOT / page).parent / path if path else ROOT / page
    assert found.exists(), target
    assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize(("module", "page", "number"), list(cited_sections()))
def test_sections_that_the_code_cites_are_there(module: str, page: str, number: str) -> None:
    headings = _HEADING.findall(text_of(ROOT / page))
    assert any(re.match(rf"{re.escape(number)}\.? ", heading) for heading in headings), module


def test_examples_are_true(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    env = {"HOME": str(HOME), "RETOLD_HOME": str(tmp_path)}
    for name, value in env.items():  # nobody's own archive
        monkeypatch.setenv(name, value)
    sync_archive(tmp_path, env)
    runner = doctest.DocTestRunner(verbose=False)
    tests = [
        *examples(text_of(ROOT / "README.md"), "README.md"),
        *examples(text_of(ROOT / "docs/redaction.md"), "redaction.md"),
        *doctest.DocTestFinder(recurse=False).find(retold),
    ]
    for test in tests:
        assert test.examples, test.name
        assert runner.run(test).failed == 0, test.name
