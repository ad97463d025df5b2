"""Tool calls: what each was about, whether it failed, and what its error tells."""

import re
from collections.abc import Iterator

from retold.analysis.commands import command_of, is_answer
from retold.analysis.prose import clipped
from retold.model.session import NAMES, ToolCall, patched

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
