"""Shell commands and tool calls: the programs that a command runs, whether a call failed, and what it was about."""

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from retold.insights.text import clip
from retold.model.session import PATH_ARGUMENTS, ToolCall, patched_paths

LONGEST = 2_000
TARGET = 200
"""Characters of the target of a call."""
_SEPARATOR = re.compile(r"&&|\|\||[;\n]")
_PIPE = re.compile(r"\|&?")
_ASSIGNMENT = re.compile(r"^\w+=")
_VERSION = re.compile(r"(?<=python)[\d.]+$")
_WRAPPERS = frozenset(
    ("sudo", "env", "time", "nice", "nohup", "exec", "npx", "command", "xvfb-run", "stdbuf")
)
_WRAPPERS_OF_TWO_WORDS = frozenset(
    (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"))
)  # fmt: skip
_MINOR = frozenset(
    ("cd", "export", "echo", "source", ".", "set", "mkdir", "true", "sleep", "pwd", "printf", "clear")
)
"""Programs that are not the purpose of a command."""
_NEGATIVE = frozenset(
    ("grep", "rg", "egrep", "diff", "cmp", "test", "[", "[[", "which", "command", "type", "pgrep", "false")
)
"""Programs whose exit code 1 means no."""
READ_ONLY = _NEGATIVE | frozenset(
    ("ls", "cat", "head", "tail", "find", "fd", "tree", "wc", "stat", "file", "du", "df", "less", "sed", "awk", "jq")
)  # fmt: skip
"""Programs that change nothing."""
_READ_ONLY_GIT = frozenset(("status", "log", "diff", "show", "branch", "blame"))
_CHECKERS = frozenset(
    (
        "pytest", "tox", "nox", "unittest", "mypy", "pyright", "ruff", "flake8", "pylint", "black", "eslint", "prettier", "tsc",
        "jest", "vitest", "mocha", "playwright", "cargo", "go", "npm", "pnpm", "yarn", "make", "gradle", "gradlew", "mvn",
        "ctest", "rspec", "phpunit", "dotnet", "swift", "mix",
    )
)  # fmt: skip
"""Programs that succeed on a part of something if they succeed on all of it."""
_WITH_SUBCOMMANDS = frozenset(
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
"""Checkers whose first word is a subcommand."""
_INTERPRETERS = frozenset(
    ("python", "node", "deno", "ruby", "perl", "bash", "sh", "zsh", "psql", "sqlite3", "cat", "tee")
)
"""Programs that without words run their input, which differs each time."""
_EVERYTHING = frozenset((".", "./", "./...", "--all"))
_IDLE_OPTIONS = frozenset(("--version", "-V", "--help", "-h", "--collect-only", "--co"))
"""Options with which a program does none of its work."""
_LISTING = ("run",)
"""`npm run` alone lists the scripts."""
_TARGET_ARGUMENTS = ("url", "query", "pattern", "prompt", "task", "subject", "skill", "name")
_ERROR_LINES, _ERROR_LINE, _LONGEST_OUTPUT = 4, 240, 100_000
_FRAME = re.compile(
    r"^(?:Chunk ID|Wall time|Process exited with code|Original token count|Process Group PGID|Background PIDs|Command|Directory"
    r"|Exit [Cc]ode|Signal|Duration|Total output lines)\b.*$|^(?:Output|Error):\s*(?:\(none\)|\(empty\))?$|^</?[\w-]+>$"
)
"""Lines that agents add around the output of a command."""
_LABEL = re.compile(r"^(?:Output|Error|Stderr|Stdout): ")
_RULE = re.compile(r"[=_*~-]{5,}|^[.FEsx]{3,}\s|^Traceback \(")
_RUNNING = re.compile(r"\brunning (?:with session ID|in (?:the )?background)\b", re.IGNORECASE)
_HEAD = 500
"""Characters of a result that may say that the command still runs."""
_ERROR_WORDS = re.compile(
    r"^E\s|error|exception|fail|fatal|panic|denied|refused|rejected|cannot|can't|could not|couldn't|unable|not found|no such|undefined"
    r"|unknown|missing|invalid|unsupported|unexpected|unresolved|does not|doesn't|not allowed|timed? ?out|conflict|mismatch|✗|✘|✖",
    re.IGNORECASE,
)


class CommandRun(msgspec.Struct, frozen=True):
    """A program that a command runs, and its words without options."""

    program: str
    words: tuple[str, ...]


def shell_command(call: ToolCall) -> str:
    """Return the command of a shell call as a person would type it; empty if there is none."""
    for name in ("command", "cmd", "script", "input"):
        value = call.arguments.get(name)
        if type(value) is str:
            return value[:LONGEST]
        if type(value) is list:
            words = [word for word in value if type(word) is str]
            is_shell = len(words) > 2 and words[0].endswith("sh") and words[1].startswith("-")  # noqa: PLR2004 - sh -c COMMAND
            return (words[2] if is_shell else " ".join(words))[:LONGEST]
    return ""


def parse_runs(command: str) -> tuple[CommandRun, ...]:
    """Return the programs that a command runs, without minor ones; of a pipe, the first."""
    text = command[:LONGEST].partition("<<")[0]
    steps = (_PIPE.split(step, maxsplit=1)[0] for step in _SEPARATOR.split(text))
    runs = [run for step in steps if (run := _parse_run(step))]
    return tuple(run for run in runs if run.program not in _MINOR) or tuple(runs)


def _parse_run(step: str) -> CommandRun | None:
    try:
        words = shlex.split(step)
    except ValueError:  # an unclosed quote
        words = step.split()
    words = _without_wrappers(words)
    if not words:
        return None
    program = _VERSION.sub("", words[0].replace("\\", "/").rpartition("/")[2])
    if program == "python" and words[1:2] == ["-m"] and len(words) > 2:  # noqa: PLR2004 - the module
        program, words = words[2], words[2:]
    return CommandRun(program, tuple(_plain_words(words[1:])))


def _without_wrappers(words: list[str]) -> list[str]:
    while words:
        if _ASSIGNMENT.match(words[0]) or words[0] in _WRAPPERS:
            words = words[1:]
        elif tuple(words[:2]) in _WRAPPERS_OF_TWO_WORDS or words[0] == "timeout":
            words = words[2:]
        else:
            break
    return words


def _plain_words(words: Sequence[str]) -> Iterator[str]:
    """Yield words that are neither numbers, nor redirections, nor options that change little."""
    for word in words:
        is_option = word.startswith(("-", ">", "<", "2>", "&>", "1>"))
        if word in _IDLE_OPTIONS or not (is_option or word.isdecimal()):
            yield word


def is_negative_answer(command: str, exit_code: int | None) -> bool:
    """Return whether an exit code means no, and not a failure."""
    runs = parse_runs(command)
    return exit_code == 1 and bool(runs) and runs[-1].program in _NEGATIVE


def is_read_only(command: str) -> bool:
    """Return whether a command changes nothing."""
    runs = parse_runs(command)
    return bool(runs) and all(
        run.program in READ_ONLY
        or (run.program == "git" and run.words[:1] and run.words[0] in _READ_ONLY_GIT)
        for run in runs
    )


def repairs(done: Sequence[CommandRun], failed: Sequence[CommandRun]) -> bool:
    """Return whether a successful command ran everything that a failed one did, on the same or on more."""
    return bool(failed) and all(any(_covers(one, run) for one in done) for run in failed)


def _covers(done: CommandRun, failed: CommandRun) -> bool:
    if done.program != failed.program:
        return False
    if done.words == failed.words:
        return bool(done.words) or done.program not in _INTERPRETERS
    if done.program not in _CHECKERS or done.words == _LISTING:
        return False
    if done.program in _WITH_SUBCOMMANDS and done.words[:1] != failed.words[:1]:
        return False
    checked, failing = _objects(done), _objects(failed)
    return (
        not checked
        or bool(_EVERYTHING.intersection(checked))
        or (bool(failing) and all(_is_within(one, checked) for one in failing))
    )


def _objects(run: CommandRun) -> tuple[str, ...]:
    return run.words[1:] if run.program in _WITH_SUBCOMMANDS else run.words


def _is_within(path: str, others: Sequence[str]) -> bool:
    return any(path == one or path.startswith((f"{one.rstrip('/')}/", f"{one}::")) for one in others)


def short_target(call: ToolCall) -> str:
    """Return the target of a call on one line: its command, its file, else its main argument."""
    return clip(full_target(call), TARGET)


def full_target(call: ToolCall) -> str:
    """Return the whole target of a call: its command, its file, else its main argument."""
    if call.canonical == "shell_exec" and (command := shell_command(call)):
        return command
    for name, value in call.arguments.items():
        if name in PATH_ARGUMENTS and type(value) is str and value:
            return value
    for value in call.arguments.values():
        if type(value) is str and "*** " in value and (files := patched_paths(value)):
            return files[0]
    arguments = (*(call.arguments.get(name) for name in _TARGET_ARGUMENTS), *call.arguments.values())
    return next((text for text in arguments if type(text) is str and text), "")


def has_failed(call: ToolCall) -> bool:
    """Return whether a call failed: the tool, or the command that it ran."""
    failed = call.status == "error" or (call.status == "success" and bool(call.exit_code))
    return failed and not (
        call.canonical == "shell_exec" and is_negative_answer(shell_command(call), call.exit_code)
    )


def has_succeeded(call: ToolCall) -> bool:
    """Return whether a call succeeded; a command that still runs has not."""
    is_running = call.canonical == "shell_exec" and _RUNNING.search((call.result or "")[:_HEAD])
    return call.status == "success" and not call.exit_code and not is_running


def call_error(call: ToolCall) -> str:
    """Return the lines of a failed call that describe the error."""
    return error_excerpt(call.error or call.full_result or call.result or "")


def error_excerpt(text: str) -> str:
    """Return the first lines of a text that describe an error; if none does, the last lines."""
    lines = list(dict.fromkeys(_plain_lines(text)))
    errors = [line for line in lines if _ERROR_WORDS.search(line)]
    chosen = errors[:_ERROR_LINES] if errors else lines[-_ERROR_LINES:]
    return "\n".join(clip(line, _ERROR_LINE) for line in chosen)


def _plain_lines(text: str) -> Iterator[str]:
    """Yield the lines of the output of a command, without those that the agent added."""
    half = _LONGEST_OUTPUT // 2
    if len(text) > _LONGEST_OUTPUT:  # both ends, in whole lines
        text = text[:half].rpartition("\n")[0] + "\n" + text[-half:].partition("\n")[2]
    for line in text.splitlines():
        plain = line.strip()
        if plain and not _FRAME.match(plain):
            bare = _LABEL.sub("", plain)
            if not _RULE.search(bare):
                yield bare
