"""Separates a person's words from the text that the CLI adds to them.

Evidence: `docs/formats/gemini.md`, section 9. A user record becomes parts: `Text` is what a person typed, `Context` what
the CLI added, `Attachment` what a person referred to. Nothing is dropped.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from retold.agents.gemini.raw import Record, text_parts
from retold.agents.gemini.state import Notes
from retold.agents.gemini.tool_results import make_attachment, normalise_response
from retold.model.session import Attachment, Context, ContextKind, Opaque, Part, Text, Thinking

FILES_OPEN = "--- Content from referenced files ---"
FILES_END = "--- End of content ---"
_CONTEXT_OPENINGS: tuple[tuple[str, ContextKind], ...] = (
    ("This is the Gemini CLI. We are setting up the context for our chat.", "environment"),
    ("- **Workspace Directories:**\n", "environment"),  # `/directory add`
    ("I'm currently working in the following directories:", "environment"),  # the same before 0.29
    ("I'm currently working in the directory:", "environment"),
    ("Here is the user's editor context as a JSON object.", "ide"),
    ("Here is a summary of changes in the user's editor context", "ide"),
    ("<state_snapshot>", "snapshot"),
    ("System: Potential loop detected", "continuation"),
    ("Background execution update:", "background"),
    ("I ran the following shell command:\n", "shell"),
    ("[Function Response: ", "tool_result"),  # results of MCP tools in 0.12 to 0.20
    ("Your task is to do a deep investigation of the codebase", "task"),
)
"""Openings of texts that nobody typed: the whole text is context."""
_CONTINUE = "Please continue."
_CONTEXT_OPENS, _CONTEXT_ENDS = "<session_context>", "</session_context>"
_HOOK_OPENS, _HOOK_ENDS = "<hook_context>", "</hook_context>"
_STEERING = re.compile(r"User (?:steering update|hints):\s*<user_input>\n?")
_INPUT_ENDS = "</user_input>"
_TAGS = (_CONTEXT_OPENS, _HOOK_OPENS, "<user_input>")
_OPENINGS = tuple(opening for opening, _ in _CONTEXT_OPENINGS)
_REFERENCE = re.compile(r"\nContent from @([^\n]+):(?=\n)")
ACKNOWLEDGEMENTS = ("Got it. Thanks for the context!", "Got it. Thanks for the additional context!")


def prompt_of(parts: Iterable[Part]) -> str | None:
    """Return what a person typed in these parts, or None."""
    words = "".join(part.text for part in parts if type(part) is Text).strip()
    return words or None


def split_user_content(content: Any, notes: Notes) -> tuple[Part, ...]:
    """Return the parts of a user record."""
    if type(content) is str:
        return tuple(_split_text(content)) if content else ()
    parts: list[Part] = []
    block: list[str] | None = None
    items = list(text_parts(content))
    last = max((place for place, item in enumerate(items) if _is_files_end(item)), default=-1)
    for place, item in enumerate(items):
        text = (
            item if type(item) is str else item.get("text") if type(item) is dict and len(item) == 1 else None
        )
        if type(text) is not str:
            parts.extend(_file_parts("".join(block or ())))
            block = None if block is None else []
            parts.extend(normalise_other_part(item, notes))
        elif block is None and text.strip() != FILES_OPEN:
            parts.extend(_split_text(text))
        else:
            block = [] if block is None else block
            block.append(text)
            if place == last:
                parts.extend(_file_parts("".join(block)))
                block = None
    parts.extend(_file_parts("".join(block or ())))
    return tuple(parts)


def _is_files_end(item: Any) -> bool:
    text = item.get("text") if type(item) is dict else item
    return type(text) is str and text.strip() == FILES_END


def as_task(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a message that an agent wrote to its subagent: nobody typed them."""
    return tuple(Context("task", part.text) if type(part) is Text else part for part in parts)


def _split_text(text: str) -> Iterator[Part]:
    position = 0
    while (opens := _block_start(text, position)) >= 0:
        start = max(position, opens - (text[opens - 1 : opens] == "\n"))
        ends = _block_end(text, opens)
        yield from _split_around_files(text[position:start])
        yield from _file_parts(text[start:ends])
        position = ends
    yield from _split_around_files(text[position:] if position else text)


def _block_start(text: str, position: int) -> int:
    """Return where a block of referenced files begins, -1 if there is none; the mark must be a line of its own."""
    found = text.find(FILES_OPEN, position)
    while found >= 0:
        behind = found + len(FILES_OPEN)
        if text[max(found - 1, 0) : found] in ("", "\n", "\r") and text[behind : behind + 1] in (
            "",
            "\n",
            "\r",
        ):
            return found
        found = text.find(FILES_OPEN, behind)
    return found


def _block_end(text: str, opens: int) -> int:
    """Return where the block of referenced files ends.

    The mark is a line of its own. A file in the block may hold the mark, so the last one counts. Without one, the block goes
    to the end of the text.
    """
    ends = len(text)
    while (found := text.rfind(FILES_END, opens, ends)) >= 0:
        behind = found + len(FILES_END)
        if text[found - 1] == "\n" and text[behind : behind + 1] in ("", "\n", "\r"):
            return behind
        ends = found
    return len(text)


def _split_around_files(text: str) -> Iterator[Part]:
    kind = _kind(text)
    if kind is not None:
        yield Context(kind, text)
    elif "<" in text and any(mark in text for mark in _TAGS):
        yield from _split_tags(text)
    elif text:
        yield Text(text)


def _kind(text: str) -> ContextKind | None:
    start = text.lstrip() if text[:1].isspace() else text
    if start.startswith(_OPENINGS):
        return next(kind for opening, kind in _CONTEXT_OPENINGS if start.startswith(opening))
    return "continuation" if start.startswith(_CONTINUE) and start.rstrip() == _CONTINUE else None


def _split_tags(text: str) -> Iterator[Part]:
    """Yield the parts of a text with tags. A search by `find` keeps it linear: a pattern would look for each end from each start."""
    position = 0
    context = _CONTEXT_ENDS if text.lstrip().startswith(_CONTEXT_OPENS) else None
    if context and (ends := text.find(context)) >= 0:
        position = ends + len(context)
        yield Context("environment", text[:position])
    while (opens := text.find(_HOOK_OPENS, position)) >= 0 and (ends := text.find(_HOOK_ENDS, opens)) >= 0:
        yield from _split_steering(text[position:opens])
        position = ends + len(_HOOK_ENDS)
        yield Context("hook", text[opens:position])
    yield from _split_steering(text[position:])


def _split_steering(text: str) -> Iterator[Part]:
    """Yield the human's words and the note around them, which steers a working agent."""
    match = _STEERING.search(text)
    ends = text.find(_INPUT_ENDS, match.end()) if match else -1
    if match is None or ends < 0:
        yield from _typed_part(text)
        return
    ends -= text[match.end() : ends].endswith("\n")
    yield from _typed_part(text[: match.start()])
    yield Context("steering", match[0])
    yield from _typed_part(text[match.end() : ends])
    yield Context("steering", text[ends:])


def _typed_part(text: str) -> Iterator[Part]:
    if text:
        kind = _kind(text)
        yield Text(text) if kind is None else Context(kind, text)


def _file_parts(block: str) -> Iterator[Part]:
    """Yield the expansion of `@` references: the paths as attachments, the content as context."""
    for path in _REFERENCE.findall(block):
        yield Attachment(path=path)
    if block:
        yield Context("referenced_files", block)


def normalise_part(item: Any, notes: Notes) -> Part:
    """Return a part that is not plain text."""
    match item:
        case {"text": str(text), "thought": True}:
            return Thinking(None, text, None, _signature(item))
        case {"text": str(text)} if item.keys() <= {"text", "thought", "thoughtSignature"}:
            return Text(text, _signature(item))
        case {"functionResponse": dict(found)}:
            notes.has_results = True
            return make_tool_result(found)
        case {"inlineData": dict()} | {"fileData": dict()}:
            return make_attachment(item)
        case {"executableCode": {"code": str(code)}}:
            return Context("code", code)
        case {"codeExecutionResult": {"output": str(output)}}:
            return Context("code_result", output)
        case _:
            notes.add_opaque("unknown-part", _describe_shape(item))
            return Opaque(item)


def normalise_other_part(item: Any, notes: Notes) -> Iterator[Part]:
    """Yield a part that is not plain text, and its unknown fields."""
    yield normalise_part(item, notes)
    rest = _unknown_fields(item)
    if rest:
        yield Opaque(rest)


def _unknown_fields(item: Any) -> Record | None:
    """Return the fields of a part that `normalise_part` leaves out."""
    known_fields: dict[str, tuple[str, ...]] = {
        "executableCode": ("code",),
        "codeExecutionResult": ("output",),
    }
    for kind, known in known_fields.items():
        holder = item.get(kind) if type(item) is dict else None
        if type(holder) is dict and all(type(holder.get(key)) is str for key in known):
            return {key: value for key, value in holder.items() if key not in known}
    match item:
        case {"functionResponse": dict(found)}:
            return normalise_response(found).rest
        case {"inlineData": dict()} | {"fileData": dict()}:
            return {key: value for key, value in item.items() if key not in ("inlineData", "fileData")}
    return None


def make_tool_result(record: Record) -> Context:
    """Return a tool's result in a user record of its own (0.44 and later)."""
    outcome = normalise_response(record)
    texts = [text for text in (outcome.text, outcome.error) if text is not None]
    call_id = record.get("id")
    return Context(
        "tool_result",
        "\n".join(texts) if texts else None,
        call_id if type(call_id) is str else None,
        outcome.error is not None,
        outcome.attachments,
    )


def _signature(item: Record) -> str | None:
    signature = item.get("thoughtSignature")
    return signature if type(signature) is str else None


def _describe_shape(item: Any) -> str:
    return (
        "a part with " + ", ".join(sorted(item)[:6])
        if type(item) is dict
        else f"a part that is a {type(item).__name__}"
    )
