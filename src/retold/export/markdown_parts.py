"""Entries of a timeline as blocks of a Markdown page: what was said as it is, what is long folded."""

from retold.export.block import MarkdownBlock
from retold.export.inline import as_code, as_html
from retold.export.markdown_calls import indented, put_call
from retold.export.telling import ExportOptions
from retold.model.session import (
    Attachment,
    Context,
    Entry,
    Event,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from retold.model.usage import Usage

_LABELS = {"referenced_files": "files that the prompt names", "tool_result": "a result of no known call"}
"""What was added to a message, where its kind alone would not be understood."""


def put_entry(block: MarkdownBlock, entry: Entry, choice: ExportOptions) -> None:
    """Add an entry; nothing, where there is nothing to tell."""
    if isinstance(entry, Event):
        _put_event(block, entry, choice)
        return
    _put_message(block, entry, choice)
    if choice.tokens and entry.usage is not None:
        block.put(f"<sub>{_tokens(entry.usage)}</sub>")


def _put_event(block: MarkdownBlock, event: Event, choice: ExportOptions) -> None:
    if event.kind == "compaction":
        block.put("---\n\n*The conversation was compressed here.*")
        if event.text:
            block.parts.append({"said": _folded(block, "what was left of it", event.text)})
    elif event.kind == "error":
        block.put("**Error:**")
        block.parts.append({"said": block.code(event.text)})
    elif choice.notices and event.text:
        block.parts.append({"said": _folded(block, event.kind, event.text)})
    elif choice.notices and event.opaque is not None:
        _folded(block, event.kind, indented(event.opaque.value))


def _put_message(block: MarkdownBlock, message: Message, choice: ExportOptions) -> None:
    """Add what a message says; of a prompt in several texts, the human's own words once."""
    is_told = False
    for part in message.parts:
        if isinstance(part, Text) and message.prompt is not None:
            if not is_told:
                block.parts.append({"prompt": block.words(message.prompt, is_quoted=True)})
            is_told = True
        else:
            _put_part(block, part, choice, is_quoted=message.role == "user")
    if message.prompt is not None and not is_told:
        block.parts.append({"prompt": block.words(message.prompt, is_quoted=True)})


def _put_part(block: MarkdownBlock, part: Part, choice: ExportOptions, *, is_quoted: bool) -> None:
    match part:
        case Text(text) if text.strip():
            block.parts.append({"text": block.words(text, is_quoted=is_quoted)})
        case Thinking() if choice.thoughts:
            _put_thought(block, part)
        case ToolCall() if choice.tools != "none":
            put_call(block, part, choice)
        case Attachment():
            block.put(f"- attached: {as_code(part.path or part.media_type or 'something')}")
            block.parts.append({"attachment": {"path": part.path, "media_type": part.media_type}})
        case Context(kind="shell" | "task", text=str(text)):
            block.parts.append({"context": part.kind, "said": block.words(text, is_quoted=True)})
        case Context(text=str(text)) if choice.notices or part.kind in _LABELS:
            label = _LABELS.get(part.kind, part.kind.replace("_", " "))
            block.parts.append({"context": part.kind, "said": _folded(block, label, text)})
        case Opaque() if choice.notices:
            block.parts.append({"opaque": _folded(block, "not understood", indented(part.value))})


def _put_thought(block: MarkdownBlock, thought: Thinking) -> None:
    told = f": {as_html(thought.subject)}" if thought.subject else ""
    block.put(f"<details>\n<summary>thought{told}</summary>")
    block.parts.append({"thinking": block.words(thought.text), "subject": thought.subject})
    block.put("</details>")


def _folded(block: MarkdownBlock, label: str, text: str) -> tuple[int, int, str]:
    block.put(f"<details>\n<summary>{as_html(label)}</summary>")
    place = block.code(text)
    block.put("</details>")
    return place


def _tokens(usage: Usage) -> str:
    figures = {"in": usage.input, "cached": usage.cached, "out": usage.output, "thinking": usage.reasoning}
    told = ", ".join(f"{name} {figure:,}" for name, figure in figures.items() if figure is not None)
    return f"tokens: {told}{' (estimated)' if usage.estimated else ''}"
