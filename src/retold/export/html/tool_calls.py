"""Views of tool calls for the templates: a line with name, argument and outcome, and boxes of arguments and results."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup, escape

from retold.export.diffs import DiffChange, diffs_of_call, diffs_with_content, file_edits
from retold.export.html.blocks import (
    HEAD,
    RenderContext,
    answer_box,
    attachment_boxes,
    clip_text,
    error_box,
    fold,
    json_box,
    labelled_box,
    language_of_file,
    show_control_chars,
    text_box,
)
from retold.export.transcript import MARKS, format_json, key_argument, one_line
from retold.model.session import AgentDisplay, FilesDisplay, TextDisplay, TodosDisplay, ToolCall
from retold.sessions.slices import TimelineSlice

_KINDS = {"+": "added", "-": "removed", "@": "hunk", "*": "hunk"}
_HEADS = ("+++", "---", "***", "Index: ", "====")


def diff_box(change: DiffChange, key: str) -> Markup:
    """Return a diff in colours; the first character of each line says the same."""
    return clip_text(change.diff, key, _diff_lines)


def _diff_lines(text: str) -> Markup:
    lines = []
    for line in text.split("\n"):
        kind = "hunk" if line.startswith(_HEADS) else _KINDS.get(line[:1])
        lines.append(f'<span class="{kind}">{escape(line)}</span>' if kind else str(escape(line)))
    return Markup('<pre class="diff" dir="ltr">' + "\n".join(lines) + "</pre>")  # noqa: S704 - escaped above


_STATUS = {"success": "done", "error": "failed", "cancelled": "cancelled", "unknown": "no result recorded"}
_LINE = 2_000
_SHORT = 100
_LANGUAGES = {"command": "bash", "cmd": "bash", "script": "bash", "sql": "sql"}
_MARKDOWN_TOOLS = ("ask_user", "planning", "web_access")
"""Tools whose results are Markdown if the agent says so: it says so of files and lists as well."""
_MARKS = {"completed": "☑", "done": "☑", "in_progress": "▶", "cancelled": "☒"}


class CallView(msgspec.Struct, frozen=True):
    """A call as templates get it; docs/exports.md lists its fields."""

    name: str
    status: str
    """`success`, `error`, `cancelled` or `unknown`."""
    outcome: str
    """The status in words."""
    mark: str
    told: str
    """The argument that says most, on one line."""
    body: Iterator[Markup]
    """Boxes of the arguments and results; empty if only names are shown."""
    is_folded: bool
    """Whether it has a body."""
    subagent: RenderContext | None
    child: str | None
    """The session of the subagent that it started, even if that is not nested here."""
    number: int
    """Its number in the message, from 1."""
    size: int
    """Characters of the arguments and results."""


def call_view(call: ToolCall, context: RenderContext, anchor: str, number: int) -> CallView:
    """Return the view of the call with this number in its message."""
    words = [_STATUS[call.status]] if call.status != "success" or not call.exit_code else []
    words += [f"exit code {call.exit_code}"] if call.exit_code else []
    is_full = context.options.tools == "full"
    return CallView(
        name=call.name,
        status="error" if call.exit_code else call.status,
        outcome=", ".join(words),
        mark=MARKS["error"] if call.exit_code else MARKS.get(call.status, "?"),
        told=_call_line(call),
        body=_body(call, context) if is_full else iter(()),
        is_folded=is_full,
        subagent=context.for_subagent(call.child, f"{anchor}-{number}") if is_full else None,
        child=call.child,
        number=number,
        size=_size(call),
    )


def _size(call: ToolCall) -> int:
    arguments = sum(
        len(value if type(value) is str else format_json(value)) for value in call.arguments.values()
    )
    results = (call.full_result or call.result, call.error, *call.other_results)
    attachments = sum(len(one.data or "") for one in call.attachments)
    return arguments + attachments + sum(len(text) for text in results if text)


def _call_line(call: ToolCall) -> str:
    return one_line(key_argument(call.arguments)[:_LINE])


def _body(call: ToolCall, context: RenderContext) -> Iterator[Markup]:
    key = context.key
    diffs = list(diffs_of_call(call))
    in_diffs = frozenset[str]().union(*(change.arguments for change in diffs))
    yield from _arguments(call, in_diffs, key)
    yield from (labelled_box("Change", diff_box(change, key)) for change in diffs)
    yield from _display(call, key)
    yield from _results(call, context)
    if call.attachments:
        yield attachment_boxes(call.attachments)


def _arguments(call: ToolCall, in_diffs: frozenset[str], key: str) -> Iterator[Markup]:
    """Yield short arguments in a list and others in boxes, without those in diffs and the one on the call's line."""
    line = _call_line(call)
    shown = {name: value for name, value in call.arguments.items() if name not in in_diffs and value != line}
    short = {name: str(value) for name, value in shown.items() if _is_short(value)}
    if short:
        item = Markup("<dt>{}</dt> <dd><bdi>{}</bdi></dd>")
        items = (
            item.format(show_control_chars(name), show_control_chars(value)) for name, value in short.items()
        )
        yield Markup('<dl class="arguments">{}</dl>').format(Markup("").join(items))
    for name, value in shown.items():
        if type(value) is str and name not in short:
            yield labelled_box(name, text_box(value, key, _language(call, name)))
        elif name not in short:
            yield labelled_box(name, json_box(value, key))


def _is_short(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= _SHORT and "\n" not in value
    return value is None or type(value) in (bool, int, float)


def _language(call: ToolCall, name: str) -> str:
    if call.canonical == "file_write" and name == "content":
        path = call.arguments.get("file_path")
        return language_of_file(path) if type(path) is str else ""
    return _LANGUAGES.get(name, "")


def _display(call: ToolCall, key: str) -> Iterator[Markup]:
    """Yield what the agent displayed, unless the result says the same."""
    match call.display:
        case TextDisplay(text) if text.strip() and not (call.full_result or call.result or call.error):
            yield labelled_box("Shown", text_box(text, key))
        case TodosDisplay(todos):
            item = Markup("<li>{} {}</li>")
            items = (
                item.format(_MARKS.get(todo.status or "", "☐"), show_control_chars(todo.text))
                for todo in todos
            )
            yield Markup('<ul class="todos">{}</ul>').format(Markup("").join(items))
        case FilesDisplay(summary, files) if summary or files:
            yield labelled_box("Shown", text_box("\n".join([*([summary] if summary else []), *files]), key))
        case AgentDisplay(result=str(text)) if text.strip() and not call.result:
            yield labelled_box("Answer", text_box(text, key))


def _results(call: ToolCall, context: RenderContext) -> Iterator[Markup]:
    result = call.full_result or call.result
    if call.error:
        yield error_box(call.error, context.key)
    if result and result != call.error:
        is_read = call.canonical == "agent" or (call.is_markdown and call.canonical in _MARKDOWN_TOOLS)
        yield labelled_box(
            "Result", answer_box(result, context.key, 6) if is_read else text_box(result, context.key)
        )
    for other in call.other_results:
        yield fold("What stood in place of the result at another time", text_box(other, context.key))


MOST = 40
"""Edits of a session that are shown."""
_MOST_TEXT = 4 * HEAD
"""Characters of diffs after which no more edits are shown."""


class EditBlock(NamedTuple):
    """An edit of a file as templates get it."""

    seq: int
    """The place of its message in the timeline."""
    tool: str
    status: str
    at: datetime | None
    diffs: tuple[Markup, ...]


def edit_blocks(parts: Iterable[TimelineSlice], path: str) -> tuple[list[EditBlock], int]:
    """Return the first edits of a file in a session, given by its absolute path, and how many are left out."""
    shown: list[EditBlock] = []
    size = left = 0
    for edit in file_edits(parts, path):
        changes = tuple(diffs_with_content(edit.call))
        size += sum(len(change.diff) for change in changes)
        if left or len(shown) == MOST or (shown and size > _MOST_TEXT):
            left += 1
            continue
        boxes = tuple(diff_box(change, edit.session.key) for change in changes)
        at = edit.call.at or edit.message.at
        shown.append(EditBlock(edit.seq, edit.call.name, edit.call.status, at, boxes))
    return shown, left
