#!/usr/bin/env python3
"""Generate pages from the code: the reference, schemas, and command output quoted in other pages.

`--check` writes nothing: it names stale pages and exits with 1. The pages depend on nothing but the repository, so they
are the same on every machine and Python version.
"""

import ast
import atexit
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import Provider

import retold
from retold.agents.claude import tool_calls as claude_tools
from retold.agents.codex import tool_calls as codex_tools
from retold.agents.gemini import tool_calls as gemini_tools
from retold.archive.sql import EXTRA_COLUMNS, MISSING_COLUMNS, VIEWS
from retold.cli.main import COMMANDS
from retold.lake.arrow import TYPES
from retold.maintenance.doctor.checks import CODES as FINDINGS
from retold.mcp.prompts import PROMPTS
from retold.mcp.resources import ADDRESSES
from retold.mcp.tools import TOOLS as MCP_TOOLS
from retold.model import CATEGORIES
from retold.model.problem import CODES
from retold.model.rates import Rates, encode_rates
from retold.model.serialization import schemas
from retold.model.tables import BOOL, FILES, MONEY, STRINGS, TABLES, TIME, Table
from retold.model.tables import VERSION as TABLES_VERSION
from retold.synchronization.fingerprints import library_version
from retold.synchronization.prices import library_date, library_models, library_rates, model_digest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "retold"
QUOTING_PAGES = ("README.md",)
"""Hand-written pages that quote the output of commands between marks."""
QUOTE = re.compile(
    r"(?P<opens><!-- output of: (?P<command>retold [^\n]+?)(?: \| head -n (?P<most>\d+))? -->\n).*?(?P<ends><!-- end -->)",
    re.DOTALL,
)
PROVIDERS = ("anthropic", "google", "openai")
"""The providers of the models that agents use."""
RECORDED_NAMES = (
    "claude-opus-4-20250514", "claude-opus-4-1-20250805", "claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219",
    "gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview-06-05", "gpt-5-codex", "gpt-5.1-codex", "gpt-5.1-codex-max",
)  # fmt: skip
"""Model names that agents record and that do not stand in a rule of the library."""
NOTE = "<!-- Written by scripts/generate_docs.py: change the code, then run `make docs`. -->\n\n"


class Definition(NamedTuple):
    """A class, function or alias at the top of a module, with its module."""

    module: str
    node: ast.ClassDef | ast.FunctionDef | ast.Assign


def main(arguments: Sequence[str]) -> int:
    """Write or check all pages."""
    stale = {path: text for path, text in pages() if not _is_current(path, text)}
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"stale: {path.relative_to(ROOT).as_posix()} (run `make docs`)\n")
        return 1 if stale else 0
    for path, text in stale.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        sys.stdout.write(f"wrote {path.relative_to(ROOT).as_posix()}\n")
    return 0


def known_rates_file() -> str:
    """Return the price file of `synchronization/prices.py`, with every model name in the rules of the library."""
    providers = [one for one in get_snapshot().providers if one.id in PROVIDERS]
    names = {*RECORDED_NAMES, *(name for one in providers for name in _model_names(one))}
    found = {name: rates for name in sorted(names) if (rates := library_rates(name)) is not None}
    decoded = {name: json.loads(encode_rates(rates)) for name, rates in found.items()}
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(one, sort_keys=True)}" for name, one in decoded.items()
    )
    dated = json.dumps([name for name in found if _accepts_dates(name, found[name])])
    texts = {key: text for key, text in library_models().items() if key.partition("/")[0] in PROVIDERS}
    models = json.dumps({key: model_digest(text) for key, text in texts.items()}, sort_keys=True)
    head = (
        f'"version": "{library_version()}", "date": "{library_date()}", "dated": {dated}, "models": {models}'
    )
    return f'{{{head}, "rates": {{\n{lines}\n}}}}\n'


def _accepts_dates(name: str, rates: Rates) -> bool:
    """Return whether the library gives a model the same price if a date follows its name."""
    days = (f"{year}{day}" for year in range(2023, 2029) for day in ("0101", "0514", "0929", "1231"))
    dated = (library_rates(f"{name}-{day}") for day in days)
    return all(found is not None and encode_rates(found) == encode_rates(rates) for found in dated)


def _model_names(provider: Provider) -> Iterator[str]:
    for model in provider.models:
        yield model.id
        yield from _clause_names(model.match)


def _clause_names(clause: Any) -> Iterator[str]:
    """Yield the names and prefixes in the rule that matches a model."""
    yield from (getattr(clause, kind) for kind in ("equals", "starts_with") if hasattr(clause, kind))
    for inner in (*getattr(clause, "or_", ()), *getattr(clause, "and_", ())):
        yield from _clause_names(inner)


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each page."""
    reference = ROOT / "docs" / "reference"
    yield reference / "cli.md", cli_page()
    yield reference / "findings.md", findings_page()
    yield reference / "library.md", library_page()
    yield reference / "mcp.md", mcp_page()
    yield reference / "problems.md", problems_page()
    yield reference / "tables.md", tables_page()
    yield reference / "tools.md", tools_page()
    for name, schema in schemas().items():
        text = json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False)
        yield ROOT / "docs" / "schema" / f"{name}.json", text + "\n"
    yield PACKAGE / "synchronization" / "known_rates.json", known_rates_file()
    for name in QUOTING_PAGES:
        page = ROOT / name
        yield page, QUOTE.sub(_quote_output, page.read_text(encoding="utf-8"))


def output(arguments: Sequence[str]) -> str:
    """Return the output of `retold` on a terminal of 80 columns without colour."""
    # A made-up home, under a path that is the same on every machine.
    home = os.path.join("tests", "fixtures", "home")
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "TZ": "UTC"}
    env |= {"HOME": home, "USERPROFILE": home, "RETOLD_HOME": _archive_folder()}
    env = {
        name: value for name, value in env.items() if not name.startswith(("GEMINI_", "CLAUDE_", "CODEX_"))
    }
    command = [sys.executable, "-m", "retold", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)  # noqa: S603 - our own command
    return done.stdout.decode()


@cache
def _archive_folder() -> str:
    """Return a temporary folder for the archive of the made-up home."""
    folder = tempfile.mkdtemp(prefix="retold-docs-")
    atexit.register(shutil.rmtree, folder)
    return folder


def _quote_output(match: re.Match[str]) -> str:
    lines = output(shlex.split(match["command"])[1:]).splitlines()
    most = match["most"]
    shown = "\n".join(lines[: int(most)] if most else lines)
    command = match["command"] + (f" | head -n {most}" if most else "")
    return f"{match['opens']}\n```console\n$ {command}\n{shown}\n```\n\n{match['ends']}"


def cli_page() -> str:
    """Return the page with the help of every command."""
    sections = ["# The command line\n\n" + NOTE + CLI_INTRODUCTION]
    for arguments in ([], *([name] for name in COMMANDS)):
        title = " ".join(["retold", *arguments])
        sections.append(f"## {title}\n\n```text\n{help_text(arguments)}```\n")
    return "\n".join(sections)


def help_text(arguments: Sequence[str]) -> str:
    """Return a help text in the form of Python 3.13; older versions repeat the value after each name of an option."""
    return re.sub(
        r"(?m)^(  -\w) (\S+), (--\S+ \2)",
        lambda match: f"{match[1]}, {match[3]} {' ' * len(match[2])}",
        output([*arguments, "--help"]),
    )


CLI_INTRODUCTION = """\
The answer is printed on stdout; remarks and refusals go to stderr. With `--json`, every line of the answer is one JSON object
in UTF-8 that fits its [schema](../schema/), and a file that is refused is told as a [problem](problems.md) in JSON, on stderr.
Colour is used on a terminal only, and not where `NO_COLOR` is set. A control character in a transcript is printed as a
picture of itself, so that it cannot steer the terminal. So is a character that hides: one without width, a mark of direction, a tag.
Joiners stay between emoji and between letters that need them. A flag made of tags, such as that of Scotland, is printed as a black
flag and its region: 🏴[gbsct].

| exit code | when |
|---|---|
| 0 | there is an answer, even if there were problems inside a file |
| 1 | nothing was found, or at least one FILE is missing or no transcript; the others were read; `doctor`: something is at risk |
| 2 | the command line makes no sense, or SESSION may mean several |
| 3 | retold itself failed; the message names a log |
| 4 | the operating system refused something, such as a write, the archive is damaged, or a package is missing |
| 130 | Ctrl-C |

| variable | names |
|---|---|
| `RETOLD_HOME` | the folder for what retold keeps; by default in the platform's place for data |
| `GEMINI_CLI_HOME` | the folder that holds `.gemini`, or that folder itself; by default your home |
| `GEMINI_SESSIONS_DIR` | the folder that stands for `.gemini/tmp` |
| `CLAUDE_CONFIG_DIR` | the folder that stands for `.claude`; several with commas between |
| `CLAUDE_PROJECTS_DIR` | the folder that stands for `.claude/projects` |
| `CODEX_HOME` | the folder that stands for `.codex` |
| `CODEX_SESSIONS_DIR` | the folder that stands for `.codex/sessions` |
| `NO_COLOR` | no colour, if it is set to anything |
"""


def findings_page() -> str:
    """Return the page with the codes of findings."""
    rows = [f"| `{code}` | {meaning} |" for code, meaning in FINDINGS.items()]
    head = ["| finding | means |", "|---|---|"]
    return "# Findings\n\n" + NOTE + FINDINGS_INTRODUCTION + "\n" + "\n".join([*head, *rows]) + "\n"


FINDINGS_INTRODUCTION = """\
What `retold doctor` may find. With `--json` each finding is one object: `finding` (a code of this table, permanent),
`severity`, `home`, `session` (its key, or the agent's own id if it is not archived), `when` (from when on the agent deletes it
at a start; null: at its next start, or nothing is deleted), `text`, and `fix`, a command, or null where none helps. `loss`
means that something is lost or will be if nobody acts; `warning`, that something should be mended; `note`, that it is good to
know. The exit code is 4 where the archive itself is damaged or cannot be used, else 1 where there is a loss or a warning.

`retold doctor` unpacks up to 64 MB of the archive's chunks and compares them with their digests: all of them in a small
archive, another part each day in a large one. `retold doctor --full` unpacks all of them and reads every row. A finding
of damage names the session and what is still there of it.
"""


def problems_page() -> str:
    """Return the page with the codes of problems, each with a case or test."""
    rows = [
        f"| `{code}` | {known.severity} | {known.meaning} | {_shown_by(code)} |"
        for code, known in CODES.items()
    ]
    head = ["| code | severity | means | shown by |", "|---|---|---|---|"]
    return "# Problems\n\n" + NOTE + PROBLEMS_INTRODUCTION + "\n" + "\n".join([*head, *rows]) + "\n"


PROBLEMS_INTRODUCTION = """\
What is wrong with a file is told as values: each has one of these codes, a message, and the place as path, line (from 1)
and JSON pointer. Codes are permanent. `loss` means that something in the file could not be read; `warning`, that
something was read in another way than it was written; `note`, that everything is there and something about it is worth
knowing. The last column links to a case or a test that makes the problem happen.
"""


def _shown_by(code: str) -> str:
    """Return a link to the simplest case that expects the code, else to a test that names it."""
    tests = ROOT / "tests"
    cases = [(codes, case) for case, codes in _cases() if code in codes]
    if cases:
        _, case = min(cases, key=lambda found: (len(found[0]), found[1]))
        return f"[{case}](../../tests/cases/{case})"
    for test in sorted(tests.rglob("test_*.py")):
        if test.name != "test_cases.py" and f'"{code}"' in test.read_text(encoding="utf-8"):
            return f"[{test.stem}](../../{test.relative_to(ROOT).as_posix()})"
    return ""


@cache
def _cases() -> list[tuple[str, frozenset[str]]]:
    """Return the name of each case with the problem codes that it expects."""
    files = sorted((ROOT / "tests" / "cases").glob("*/expected.json"))
    codes = re.compile(r'"(?:code|refused)":\s*"([a-z-]+)"')
    return [(file.parent.name, frozenset(codes.findall(file.read_text(encoding="utf-8")))) for file in files]


TOOLS = {"Gemini CLI": gemini_tools.TOOLS, "Claude Code": claude_tools.TOOLS, "Codex CLI": codex_tools.TOOLS}


def tables_page() -> str:
    """Return the page with the tables and the meaning of each column."""
    head = (
        "# Tables\n\nWhat many sessions make, one row for each thing in them: as Parquet (`retold export --format parquet`), on"
        " Spark, and as views for `retold sql`. These lack the columns that are marked *said*, which the archive keeps in the originals"
        " alone, and those that are marked *not in SQL*: [Questions in SQL](../sql.md) tells why."
        f" This is version {TABLES_VERSION} of them: it is raised when a column goes or changes its meaning,"
        " not when one is added.\n"
    )
    return NOTE + head + "".join(_table(table) for table in TABLES.values()) + _types()


IN_SQL = {
    BOOL: "0 or 1",
    TIME: "text: `2026-01-27T15:21:00.000Z`",
    MONEY: "a number of dollars",
    STRINGS: "text: JSON",
    FILES: "text: JSON",
}
"""The form in SQLite of the types that it lacks."""


def _types() -> str:
    rows = "".join(
        f"| {kind} | `{arrow}` | {IN_SQL.get(kind, 'the same')} |\n" for kind, arrow in TYPES.items()
    )
    return f"\n## Types\n\n| type | in Arrow and Parquet, and so on Spark | in SQL |\n|---|---|---|\n{rows}"


def _table(table: Table) -> str:
    lacking = MISSING_COLUMNS.get(table.name, {})
    rows = "".join(
        f"| `{column.name}` | {column.type}{'' if column.is_nullable else ', not null'}"
        f"{', *said*' if column.is_said else ''}{', *not in SQL*' if column.name in lacking else ''} | {column.doc} |\n"
        for column in table.columns
    )
    rows += "".join(
        f"| `{column.name}` | {column.type}, not null, *only in SQL* | {column.doc} |\n"
        for column in EXTRA_COLUMNS.get(table.name, ())
    )
    doc = table.doc if table.name in VIEWS else f"{table.doc} There is no view of it."
    return f"\n## `{table.name}`\n\n{doc}\n\n| column | type | meaning |\n|---|---|---|\n{rows}"


def tools_page() -> str:
    """Return the page with the tool names of each agent."""
    names = ", ".join(f"`{name}`" for name in CATEGORIES)
    lines = ["# Tools\n\n" + NOTE + TOOLS_INTRODUCTION.format(names=names)]
    for agent, tools in TOOLS.items():
        lines += [f"| {agent} | canonical | category |", "|---|---|---|"]
        lines += [f"| `{name}` | `{ours}` | {CATEGORIES[ours]} |" for name, ours in tools.items()]
        lines.append("")
    return "\n".join(lines)


TOOLS_INTRODUCTION = """\
A tool call keeps the name that the agent gave it, and has a canonical name and a category beside it, the same for every
agent. The canonical names are {names}.

What is not in the tables is `mcp` if it belongs to an MCP server, by its name or its title, `agent` if the call started a
subagent, and `other` else.
"""


def mcp_page() -> str:
    """Return the page with the tools, resources and prompts of the MCP server."""
    lines = ["# What agents can ask\n\n" + NOTE + MCP_INTRODUCTION]
    for tool in MCP_TOOLS:
        lines += [f"## {tool.name}\n", f"{tool.about}\n", "| argument | takes | for |", "|---|---|---|"]
        schema = tool.schema()
        for name, field in schema["properties"].items():
            needed = "" if "default" in field else ", needed"
            description = field["description"].replace("|", "\\|")
            lines.append(f"| `{name}` | {_allowed_values(field)}{needed} | {description} |")
        lines.append("")
    lines.append("## Resources\n\n| address | what |\n|---|---|")
    lines += [f"| `{uri}` | {what} |" for uri, what in ADDRESSES.items()]
    lines.append("\n## Prompts\n\n| prompt | takes | for |\n|---|---|---|")
    for offer in PROMPTS:
        taken = ", ".join(f"`{name}`" for name in offer.arguments)
        lines.append(f"| `{offer.name}` | {taken} | {offer.about} |")
    return "\n".join([*lines, ""])


def _allowed_values(field: dict[str, Any]) -> str:
    """Return the values that an argument takes, and its default."""
    if "enum" in field:
        taken = " ".join(f"`{value}`" for value in field["enum"])
    else:
        taken = {"string": "text", "integer": "number", "boolean": "yes or no"}[field["type"]]
        least, most = field.get("minimum"), field.get("maximum", 10**9)
        if least is not None:
            taken += f" from {least:,}" + (f" to {most:,}" if most < 10**9 else "")
    usual = field.get("default")
    return f"{taken}; `{usual}` unless given" if usual or type(usual) is int else taken


MCP_INTRODUCTION = """\
The tools, resources and prompts of `retold mcp`, as agents are told of them. How answers are made, how far they see and what
they leave out is told in [Agents that ask](../mcp.md).

"""


def library_page() -> str:
    """Return the page with the public names, and the types of their fields."""
    known = definitions()
    public = [name for name in retold.__all__ if name != "__version__"]
    listed = ["# The library\n\n" + NOTE + LIBRARY_INTRODUCTION]
    listed += [_section(name, known[name]) for name in public]
    inner = [name for name in _referenced_types(public, known) if name not in public]
    listed.append("## Types inside these\n\nReached through fields; not names of the package itself.\n")
    listed += [_section(name, known[name], level="###") for name in sorted(inner)]
    return "\n".join(listed)


LIBRARY_INTRODUCTION = """\
Everything here is imported from `retold` itself; other modules may change at any time. `retold.__version__` is the
version of the package. All values are frozen, times are aware and in UTC, `None` means that nothing was recorded. The
JSON form has the same names and is described by [schemas](../schema/).
"""


def definitions() -> dict[str, Definition]:
    """Return the definitions in the source of the modules behind the public names."""
    known: dict[str, Definition] = {}
    others = [
        PACKAGE / "agents" / "registry.py",
        PACKAGE / "synchronization" / "fingerprints.py",
        PACKAGE / "api.py",
    ]
    for path in [*sorted(PACKAGE.glob("model/*.py")), *others]:
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                known[node.name] = Definition(module, node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                known[node.targets[0].id] = Definition(module, node)
    return known


def _referenced_types(names: Sequence[str], known: dict[str, Definition]) -> list[str]:
    """Return the types that these definitions refer to, directly or indirectly."""
    found: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        found.append(name)
        referenced = {used for used in _referenced_names(known[name].node) if used in known}
        waiting += sorted(referenced - {*found, *waiting})
    return found


def _referenced_names(node: ast.ClassDef | ast.FunctionDef | ast.Assign) -> Iterator[str]:
    match node:
        case ast.ClassDef():
            types: list[ast.AST | None] = [*node.bases, *(field.annotation for field, _ in _fields(node))]
        case ast.FunctionDef():
            types = [*(argument.annotation for argument in _arguments(node)), node.returns]
        case ast.Assign():
            types = [node.value]
    for referenced in filter(None, types):
        yield from (part.id for part in ast.walk(referenced) if isinstance(part, ast.Name))


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _fields(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    """Yield the fields of a class with their docstrings."""
    for place, statement in enumerate(node.body):
        if isinstance(statement, ast.AnnAssign):
            below = node.body[place + 1 : place + 2]
            text = ast.get_docstring(ast.Module(body=below, type_ignores=[])) if below else None
            yield statement, " ".join((text or "").split())


def _section(name: str, found: Definition, level: str = "##") -> str:
    """Return the section of a definition: its signature or base classes, docstring and fields."""
    node = found.node
    text = f"{level} {name}\n\n"
    if isinstance(node, ast.Assign):
        return text + f"```python\n{ast.unparse(node)}\n```\n"
    if isinstance(node, ast.FunctionDef):
        return text + f"```python\n{_signature(node)}\n```\n\n{ast.get_docstring(node)}\n"
    bases = [base for base in map(ast.unparse, node.bases) if base != "msgspec.Struct"]
    kind = f"Extends {', '.join(f'`{base}`' for base in bases)}. " if bases else ""
    text += f"{kind}{ast.get_docstring(node)}\n"
    rows = [_row(field, doc) for field, doc in _fields(node)]
    text += "\n| field | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return text + "".join(_method(method) for method in node.body if isinstance(method, ast.FunctionDef))


def _method(node: ast.FunctionDef) -> str:
    """Return the signature and docstring of a public method; nothing for a property."""
    if node.name.startswith("_") or node.decorator_list:
        return ""
    return f"\n```python\n{_signature(node)}\n```\n\n{ast.get_docstring(node)}\n"


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}"


def _row(field: ast.AnnAssign, text: str) -> str:
    kind = ast.unparse(field.annotation).replace("|", "\\|")
    default = f"`{ast.unparse(field.value)}` by default. " if field.value is not None else ""
    return f"| `{ast.unparse(field.target)}` | `{kind}` | {default}{text} |".replace("  ", " ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
