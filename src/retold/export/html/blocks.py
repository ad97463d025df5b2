"""The boxes that a page is made of: each holds one text, and nothing in that text reaches beyond it."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from markupsafe import Markup, escape

from retold.export.html.clip import clipped, left_out_of
from retold.export.html.colours import coloured
from retold.export.html.pictures import picture
from retold.export.html.prose import prose
from retold.export.html.signs import show_control_chars
from retold.export.transcript import as_json, one_line
from retold.model.session import Attachment


def box(text: str, key: str, language: str = "") -> Markup:
    """Return a text as it stands, in colours if it is code."""
    return clipped(text, key, partial(_code, language) if language else _plain)


def _plain(text: str) -> Markup:
    return Markup('<pre dir="auto">{}</pre>').format(text)


def _code(language: str, text: str) -> Markup:
    return Markup('<pre class="code" dir="ltr"><code>{}</code></pre>').format(coloured(text, language))


def said(text: str, key: str) -> Markup:
    """Return what a person said, line by line as it was typed."""
    if left_out_of(text):
        return box(text, key)
    return Markup('<p class="said" dir="auto">{}</p>').format(show_control_chars(text.strip("\n")))


def told(text: str, key: str, level: int) -> Markup:
    """Return what a model said, its Markdown rendered."""
    rendered = prose(text, level)
    if rendered is None:
        return box(text, key)
    return Markup('<div class="prose" dir="auto">{}</div>').format(rendered)


def labelled(label: str, content: Markup) -> Markup:
    """Return a box with a word above that says what it is."""
    return Markup('<p class="label">{}</p>\n{}').format(show_control_chars(label), content)


def fold(summary: str, content: Markup, kind: str = "aside") -> Markup:
    """Return something behind a line that unfolds it."""
    text = Markup("<bdi>{}</bdi>").format(show_control_chars(one_line(summary)))
    return Markup('<details class="fold {}"><summary>{}</summary>{}</details>').format(kind, text, content)


def failure(text: str, key: str) -> Markup:
    """Return an error, marked as such in words too."""
    return Markup('<div class="failure"><p class="label">Error</p>{}</div>').format(box(text, key))


def as_tree(value: Any, key: str) -> Markup:
    """Return a value as JSON."""
    return box(as_json(value, indent=2), key, "json")


def attached(attachments: Iterable[Attachment]) -> Markup:
    """Return what came along: pictures as such, the rest by name and size."""
    return Markup("").join(map(_attached, attachments))


def _attached(attachment: Attachment) -> Markup:
    name = show_control_chars(one_line(attachment.path or attachment.media_type or "something"))
    shown = picture(attachment, f"Picture that came along: {name}")
    if shown is not None:
        return shown
    size = f", {len(attachment.data) * 3 // 4:,} bytes that are not shown here" if attachment.data else ""
    return Markup('<p class="attached">Attached: <bdi>{}</bdi>{}</p>').format(name, escape(size))
