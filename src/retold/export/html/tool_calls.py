"""Tool calls: a line that says which, with what and how it went, and behind it what was given and what came back."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup, escape

from retold.export.diffs import DiffChange, changed_by, changes, edits_of
from retold.export.html.blocks import (
    HEAD,
    RenderContext,
    as_tree,
    attached,
    box,
    clipped,
    failure,
    fold,
    labelled,
    language_of,
    show_control_chars,
    told,
)
from retold.export.transcript import MARKS, as_json, key_argument_of, one_line
from retold.model.session import AgentDisplay, FilesDisplay, TextDisplay, TodosDisplay, ToolCall
from retold.sessions.pages import TimelineSlice

_KINDS = {"+": "added", "-": "removed", "@": "hunk", "*": "hunk"}
_HEADS = ("+++", "---", "***", "Index: ", "====")


def diff_box(change: DiffChange, key: str) -> Markup:
    """Return a diff in its colours; each line says with its first character what became of it, too."""
    return clipped(change.diff, key, _diff)


def _diff(text: str) -> Markup:
    lines = "\n".join(map(_diff_line, text.split("\n")))
    return Markup(f'<pre class="diff" dir="ltr">{lines}</pre>')  # noqa: S704 - its lines are escaped


def _diff_line(line: str) -> str:
    kind = "hunk" if line.startswith(_HEADS) else _KINDS.get(line[:1])
    return f'<span class="{kind}">{escape(line)}</span>' if kind else str(escape(line))


_STATUS = {"success": "done", "error": "failed", "cancelled": "cancelled", "unknown": "no result recorded"}
_LINE = 2_000
_SHORT = 100
_LANGUAGES = {"command": "bash", "cmd": "bash", "script": "bash", "sql": "sql"}
_WRITTEN = ("ask_user", "planning", "web_access")
"""Whose results are Markdown where the agent says so: it says so of files and lists as well."""
_MARKS = {"completed": "☑", "done": "☑", "in_progress": "▶", "cancelled": "☒"}


class CallView(msgspec.Struct, frozen=True):
    """A call, as templates get it."""

    name: str
    status: str
    """`success`, `error`, `cancelled` or `unknown`."""
    outcome: str
    """The same in words."""
    mark: str
    told: str
    """The argument that tells most, on one line."""
    body: Iterator[Markup]
    """What was given and what came back, box by box; nothing where only names are told."""
    is_folded: bool
    """Whether there is a body."""
    subagent: RenderContext | None
    child: str | None
    """The session of the subagent that it started, whether or not that is told here."""
    number: int
    """Among the calls of its message, from 1."""
    size: int
    """Characters of what was given and what came back."""


def call_view(call: ToolCall, frame: RenderContext, anchor: str, number: int) -> CallView:
    """Return a call to be shown, the so manieth of its message."""
    words = [_STATUS[call.status]] if call.status != "success" or not call.exit_code else []
    words += [f"exit code {call.exit_code}"] if call.exit_code else []
    is_full = frame.choice.tools == "full"
    return CallView(
        name=call.name,
        status="error" if call.exit_code else call.status,
        outcome=", ".join(words),
        mark=MARKS["error"] if call.exit_code else MARKS.get(call.status, "?"),
        told=_call_line(call),
        body=_body(call, frame) if is_full else iter(()),
        is_folded=is_full,
        subagent=frame.inside(call.child, f"{anchor}-{number}") if is_full else None,
        child=call.child,
        number=number,
        size=_size(call),
    )


def _size(call: ToolCall) -> int:
    given = sum(len(value if type(value) is str else as_json(value)) for value in call.arguments.values())
    came = (call.full_result or call.result, call.error, *call.other_results)
    attachments = sum(len(one.data or "") for one in call.attachments)
    return given + attachments + sum(len(text) for text in came if text)


def _call_line(call: ToolCall) -> str:
    return one_line(key_argument_of(call.arguments)[:_LINE])


def _body(call: ToolCall, frame: RenderContext) -> Iterator[Markup]:
    key = frame.key
    found = list(changes(call))
    told_already = frozenset[str]().union(*(change.told for change in found))
    yield from _arguments(call, told_already, key)
    yield from (labelled("Change", diff_box(change, key)) for change in found)
    yield from _display(call, key)
    yield from _results(call, frame)
    if call.attachments:
        yield attached(call.attachments)


def _arguments(call: ToolCall, told_already: frozenset[str], key: str) -> Iterator[Markup]:
    """Yield the arguments, short ones in a list, others in a box each; that on the call's own line not again."""
    line = _call_line(call)
    given = {
        name: value for name, value in call.arguments.items() if name not in told_already and value != line
    }
    short = {name: str(value) for name, value in given.items() if _is_short(value)}
    if short:
        item = Markup("<dt>{}</dt> <dd><bdi>{}</bdi></dd>")
        items = (
            item.format(show_control_chars(name), show_control_chars(value)) for name, value in short.items()
        )
        yield Markup('<dl class="arguments">{}</dl>').format(Markup("").join(items))
    for name, value in given.items():
        if type(value) is str and name not in short:
            yield labelled(name, box(value, key, _language(call, name)))
        elif name not in short:
            yield labelled(name, as_tree(value, key))


def _is_short(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= _SHORT and "\n" not in value
    return value is None or type(value) in (bool, int, float)


def _language(call: ToolCall, name: str) -> str:
    if call.canonical == "file_write" and name == "content":
        path = call.arguments.get("file_path")
        return language_of(path) if type(path) is str else ""
    return _LANGUAGES.get(name, "")


def _display(call: ToolCall, key: str) -> Iterator[Markup]:
    """Yield what the agent showed, as far as the result does not say the same."""
    match call.display:
        case TextDisplay(text) if text.strip() and not (call.full_result or call.result or call.error):
            yield labelled("Shown", box(text, key))
        case TodosDisplay(todos):
            item = Markup("<li>{} {}</li>")
            items = (
                item.format(_MARKS.get(todo.status or "", "☐"), show_control_chars(todo.text))
                for todo in todos
            )
            yield Markup('<ul class="todos">{}</ul>').format(Markup("").join(items))
        case FilesDisplay(summary, files) if summary or files:
            yield labelled("Shown", box("\n".join([*([summary] if summary else []), *files]), key))
        case AgentDisplay(result=str(text)) if text.strip() and not call.result:
            yield labelled("Answer", box(text, key))


def _results(call: ToolCall, frame: RenderContext) -> Iterator[Markup]:
    result = call.full_result or call.result
    if call.error:
        yield failure(call.error, frame.key)
    if result and result != call.error:
        is_read = call.canonical == "agent" or (call.is_markdown and call.canonical in _WRITTEN)
        yield labelled("Result", told(result, frame.key, 6) if is_read else box(result, frame.key))
    for other in call.other_results:
        yield fold("What stood in place of the result at another time", box(other, frame.key))


MOST = 40
"""As many calls of a session are shown."""
_MOST_TEXT = 4 * HEAD
"""Characters of diffs after which no more is shown."""


class EditBlock(NamedTuple):
    """A call that was to change the file."""

    seq: int
    """Its place in the timeline."""
    tool: str
    status: str
    at: datetime | None
    diffs: tuple[Markup, ...]


def edits(parts: Iterable[TimelineSlice], path: str) -> tuple[list[EditBlock], int]:
    """Return the calls of a session that were to change a file, by its whole path; of very many the first, and how many are left."""
    shown: list[EditBlock] = []
    size = left = 0
    for edit in edits_of(parts, path):
        found = tuple(changed_by(edit.call))
        size += sum(len(change.diff) for change in found)
        if left or len(shown) == MOST or (shown and size > _MOST_TEXT):
            left += 1
            continue
        boxes = tuple(diff_box(change, edit.session.key) for change in found)
        at = edit.call.at or edit.message.at
        shown.append(EditBlock(edit.seq, edit.call.name, edit.call.status, at, boxes))
    return shown, left
