"""What a tool gave back: the model's copy, and the structured twin that Claude Code keeps for its own screen."""

from typing import Any

import msgspec

from retold.agents.claude.raw import Record
from retold.model.session import Attachment

_WRAPPED = ("<tool_use_error>", "</tool_use_error>")


class Result(msgspec.Struct, frozen=True, gc=False):
    """A result as the model saw it, with its twin."""

    text: str | None
    is_error: bool
    attachments: tuple[Attachment, ...] = ()
    twin: Any = None
    rest: list[Any] | None = None
    """Blocks that are neither text nor attachments."""


def result(content: Any, is_error: bool | None, twin: Any) -> Result:  # noqa: FBT001 - as recorded
    """Return what a `tool_result` block holds; a wrapped message is an error whatever the flag says."""
    if type(content) is str:
        return _of_text(content, is_error is True, twin)
    if content is None:
        return Result(None, is_error is True, twin=twin)
    texts: list[str] = []
    attachments: list[Attachment] = []
    rest: list[Any] = []
    for block in content if type(content) is list else [content]:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image" | "document", "source": dict(source)}:
                attachments.append(attachment(source))
            case _:
                rest.append(block)
    found = _of_text("\n".join(texts), is_error is True, twin) if texts else Result(None, is_error is True)
    return Result(found.text, found.is_error, tuple(attachments), twin, rest or None)


def served(block: Record) -> Result:
    """Return what a tool gave back that ran at the API: pages that were found, or why there are none."""
    content = block.get("content")
    found = content if type(content) is list else [content]
    lines = [
        str(page[key])
        for page in found
        if type(page) is dict
        for key in ("title", "url", "text", "error_code")
        if page.get(key)
    ]
    is_error = type(content) is dict and "error_code" in content
    return Result("\n".join(lines) or None, is_error or block.get("is_error") is True, (), None, found)


def _of_text(text: str, is_error: bool, twin: Any) -> Result:  # noqa: FBT001 - as recorded
    if text.startswith(_WRAPPED[0]):
        return Result(text.removeprefix(_WRAPPED[0]).removesuffix(_WRAPPED[1]), is_error=True, twin=twin)
    return Result(text, is_error, (), twin)


def attachment(source: Record) -> Attachment:
    """Return a picture or a document, with its bytes or its address."""
    media, data, url = (source.get(key) for key in ("media_type", "data", "url"))
    return Attachment(
        path=url if type(url) is str else None,
        media_type=media if type(media) is str else None,
        data=data if type(data) is str else None,
    )
