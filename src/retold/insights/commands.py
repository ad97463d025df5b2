"""Commands of a shell: which programs they run on what, and whether one that worked makes good one that did not."""

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from retold.insights.text import clipped
from retold.model.session import NAMES, ToolCall, patched

LONGEST = 2_000
_BETWEEN = re.compile(r"&&|\|\||[;\n]")
_PIPE = re.compile(r"\|&?")
_SET = re.compile(r"^\w+=")
_VERSION = re.compile(r"(?<=python)[\d.]+$")
_PUT_BEFORE = frozenset(
    ("sudo", "env", "time", "nice", "nohup", "exec", "npx", "command", "xvfb-run", "stdbuf")
)
_PUT_BEFORE_TWO = frozenset(
    (
        ("uv", "run"),
        ("poetry", "run"),
        ("pipenv", "run"),
        ("hatch", "run"),
        ("bundle", "exec"),
        ("pnpm", "exec"),
    )
)
_ASIDE = frozenset(
    ("cd", "export", "echo", "source", ".", "set", "mkdir", "true", "sleep", "pwd", "printf", "clear")
)
"""Programs beside the point of a command."""
_ANSWERING = frozenset(
    ("grep", "rg", "egrep", "diff", "cmp", "test", "[", "[[", "which", "command", "type", "pgrep", "false")
)
"""Programs that say no with exit code 1."""
LOOKING = _ANSWERING | frozenset(
    (
        "ls",
        "cat",
        "head",
        "tail",
        "find",
        "fd",
        "tree",
        "wc",
        "stat",
        "file",
        "du",
        "df",
        "less",
        "sed",
        "awk",
        "jq",
    )
)
"""Programs that only look."""
_CHECKING = frozenset(
    (
        "pytest", "tox", "nox", "unittest", "mypy", "pyright", "ruff", "flake8", "pylint", "black", "eslint", "prettier", "tsc",
        "jest", "vitest", "mocha", "playwright", "cargo", "go", "npm", "pnpm", "yarn", "make", "gradle", "gradlew", "mvn",
        "ctest", "rspec", "phpunit", "dotnet", "swift", "mix",
    )
)  # fmt: skip
"""Programs that, where they are content with the whole, are content with a part of it."""
_COMMANDED = frozenset(
    (
        "cargo",
        "go",
        "npm",
        "pnpm",
        "yarn",
        "make",
        "gradle",
        "gradlew",
        "mvn",
        "dotnet",
        "swift",
        "mix",
        "ruff",
    )
)
"""Those of them whose first word says what to do."""
_READING = frozenset(
    ("python", "node", "deno", "ruby", "perl", "bash", "sh", "zsh", "psql", "sqlite3", "cat", "tee")
)
"""Programs that, where they are given no words, do whatever they read: another thing each time."""
_WHOLE = frozenset((".", "./", "./...", "--all"))


class CommandRun(msgspec.Struct, frozen=True):
    """A program that a command runs, and the words it is given that are no options."""

    program: str
    words: tuple[str, ...]


def command_of(call: ToolCall) -> str:
    """Return the command that a call of a shell runs, as a person would type it; nothing, where there is none."""
    for name in ("command", "cmd", "script", "input"):
        value = call.arguments.get(name)
        if type(value) is str:
            return value[:LONGEST]
        if type(value) is list:
            return _of_words([word for word in value if type(word) is str])[:LONGEST]
    return ""


def _of_words(words: Sequence[str]) -> str:
    is_shell = len(words) > 2 and words[0].endswith("sh") and words[1].startswith("-")  # noqa: PLR2004 - sh -c COMMAND
    return words[2] if is_shell else " ".join(words)


_ONLY_TOLD = frozenset(("--version", "-V", "--help", "-h", "--collect-only", "--co"))
"""With these a program does nothing of what it is for, and so makes nothing good."""
_LISTED = ("run",)
"""`npm run` alone lists what could be run."""


def runs(command: str) -> tuple[CommandRun, ...]:
    """Return the programs that a command runs, without those beside the point; of a pipe, the first."""
    text = command[:LONGEST].partition("<<")[0]
    found = [run for step in _BETWEEN.split(text) if (run := _run(_PIPE.split(step, maxsplit=1)[0]))]
    return tuple(run for run in found if run.program not in _ASIDE) or tuple(found)


def _run(step: str) -> CommandRun | None:
    try:
        words = shlex.split(step)
    except ValueError:  # a quote without its other half
        words = step.split()
    words = _without_what_is_put_before(words)
    if not words:
        return None
    program = _VERSION.sub("", words[0].replace("\\", "/").rpartition("/")[2])
    if program == "python" and words[1:2] == ["-m"] and len(words) > 2:  # noqa: PLR2004 - the module
        program, words = words[2], words[2:]
    return CommandRun(program, tuple(_plain_words(words[1:])))


def _without_what_is_put_before(words: list[str]) -> list[str]:
    while words:
        if _SET.match(words[0]) or words[0] in _PUT_BEFORE:
            words = words[1:]
        elif tuple(words[:2]) in _PUT_BEFORE_TWO or words[0] == "timeout":
            words = words[2:]
        else:
            break
    return words


def _plain_words(words: Sequence[str]) -> Iterator[str]:
    """Yield words that are neither options that change little, nor numbers, nor where output goes."""
    for word in words:
        is_option = word.startswith(("-", ">", "<", "2>", "&>", "1>"))
        if word in _ONLY_TOLD or not (is_option or word.isdecimal()):
            yield word


def is_answer(command: str, exit_code: int | None) -> bool:
    """Tell whether a command that did not end well only said no."""
    found = runs(command)
    return exit_code == 1 and bool(found) and found[-1].program in _ANSWERING


def is_look(command: str) -> bool:
    """Tell whether a command only looks at something."""
    found = runs(command)
    return bool(found) and all(run.program in LOOKING or _is_asking(run) for run in found)


def _is_asking(run: CommandRun) -> bool:
    return run.program == "git" and run.words[:1] in (
        ("status",),
        ("log",),
        ("diff",),
        ("show",),
        ("branch",),
        ("blame",),
    )


def makes_good(done: Sequence[CommandRun], failed: Sequence[CommandRun]) -> bool:
    """Tell whether a command that worked ran all that another one failed to, on the same or on more."""
    return bool(failed) and all(any(_covers(one, run) for one in done) for run in failed)


def _covers(done: CommandRun, failed: CommandRun) -> bool:
    if done.program != failed.program:
        return False
    if done.words == failed.words:
        return bool(done.words) or done.program not in _READING
    if done.program not in _CHECKING:
        return False
    of, wanted = _objects(done), _objects(failed)
    if done.words == _LISTED:
        return False
    if done.program in _COMMANDED and done.words[:1] != failed.words[:1]:
        return False
    return (
        not of or bool(_WHOLE.intersection(of)) or (bool(wanted) and all(_is_in(one, of) for one in wanted))
    )


def _objects(run: CommandRun) -> tuple[str, ...]:
    return run.words[1:] if run.program in _COMMANDED else run.words


def _is_in(path: str, others: Sequence[str]) -> bool:
    return any(path == one or path.startswith((f"{one.rstrip('/')}/", f"{one}::")) for one in others)


TARGET = 200
"""Characters of what a call was about."""
_TELLING_NAMES = ("url", "query", "pattern", "prompt", "task", "subject", "skill", "name")
_ERROR_LINES, _ERROR_LINE, _LOOKED_AT = 4, 240, 100_000
_DRESS = re.compile(
    r"^(?:Chunk ID|Wall time|Process exited with code|Original token count|Process Group PGID|Background PIDs|Command|Directory"
    r"|Exit [Cc]ode|Signal|Duration|Total output lines)\b.*$|^(?:Output|Error):\s*(?:\(none\)|\(empty\))?$|^</?[\w-]+>$"
)
"""Lines that agents put around what a command printed."""
_RUNNING = re.compile(r"\brunning (?:with session ID|in (?:the )?background)\b", re.IGNORECASE)
_HEAD = 500
_LED = re.compile(r"^(?:Output|Error|Stderr|Stdout): ")
_RULE = re.compile(r"[=_*~-]{5,}|^[.FEsx]{3,}\s|^Traceback \(")
_TELLING = re.compile(
    r"^E\s|error|exception|fail|fatal|panic|denied|refused|rejected|cannot|can't|could not|couldn't|unable|not found|no such|undefined"
    r"|unknown|missing|invalid|unsupported|unexpected|unresolved|does not|doesn't|not allowed|timed? ?out|conflict|mismatch|✗|✘|✖",
    re.IGNORECASE,
)


def target(call: ToolCall) -> str:
    """Return what a call was about, on one line: its command, its file, else what it asked for."""
    return clipped(whole_target(call), TARGET)


def whole_target(call: ToolCall) -> str:
    """Return the same, however long it is."""
    if call.canonical == "shell_exec" and (command := command_of(call)):
        return command
    for name, value in call.arguments.items():
        if name in NAMES and type(value) is str and value:
            return value
    for value in call.arguments.values():
        if type(value) is str and "*** " in value and (files := patched(value)):
            return files[0]
    texts = [call.arguments.get(name) for name in _TELLING_NAMES]
    spoken = [text for text in (*texts, *call.arguments.values()) if type(text) is str and text]
    return spoken[0] if spoken else ""


def is_failed(call: ToolCall) -> bool:
    """Tell whether a call failed: the tool did, or the command that it ran."""
    has_failed = call.status == "error" or (call.status == "success" and bool(call.exit_code))
    return has_failed and not (call.canonical == "shell_exec" and is_answer(command_of(call), call.exit_code))


def is_done(call: ToolCall) -> bool:
    """Tell whether a call did what it was to do; a command that still runs has not."""
    is_running = call.canonical == "shell_exec" and _RUNNING.search((call.result or "")[:_HEAD])
    return call.status == "success" and not call.exit_code and not is_running


def error_lines(call: ToolCall) -> str:
    """Return the first lines of a failed call that tell what was wrong."""
    return telling_lines(call.error or call.full_result or call.result or "")


def telling_lines(text: str) -> str:
    """Return the first lines of a text that sound like an error; where none does, the last ones."""
    lines = list(dict.fromkeys(_plain_lines(text)))
    found = [line for line in lines if _TELLING.search(line)]
    chosen = found[:_ERROR_LINES] if found else lines[-_ERROR_LINES:]
    return "\n".join(clipped(line, _ERROR_LINE) for line in chosen)


def _plain_lines(text: str) -> Iterator[str]:
    """Yield the lines of what a command printed."""
    half = _LOOKED_AT // 2
    if len(text) > _LOOKED_AT:  # both ends, in whole lines
        text = text[:half].rpartition("\n")[0] + "\n" + text[-half:].partition("\n")[2]
    for line in text.splitlines():
        plain = line.strip()
        if plain and not _DRESS.match(plain):
            bare = _LED.sub("", plain)
            if not _RULE.search(bare):
                yield bare
