"""Markdown of answers as HTML: rendered without raw HTML, and cleaned afterwards as if it had been written by an enemy."""

from collections.abc import Iterable, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments.token import STANDARD_TYPES

from retold.export.html.colours import coloured
from retold.export.html.signs import show_control_chars

LONGEST = 20_000
"""The longest text that is rendered: Markdown can be written so that its length counts twice."""
_LANGUAGE = 40
_DEEPEST = 6
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_LINKS = ("http://", "https://", "mailto:")
_SIDES = {"text-align:right": "right", "text-align:center": "middle"}


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Keep a link only if it leads out of the page, to a place of the web: a path would be one of the reader's."""
    return value if (tag, name) != ("a", "href") or value.lower().startswith(_LINKS) else None


_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags=set(),
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    attribute_filter=_attribute,
    allowed_classes={
        "pre": {"code"},
        "span": {"language", *filter(None, STANDARD_TYPES.values())},
        "td": {"right", "middle"},
        "th": {"right", "middle"},
    },
    link_rel="noopener noreferrer nofollow",
    url_schemes={"http", "https", "mailto"},
)


class _Renderer(RendererHTML):
    """Puts code into colours, and never loads a picture."""

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002 - its signature
        token = tokens[idx]
        told = " ".join(token.info.split())[:_LANGUAGE]
        label = Markup('<span class="language">{}</span>').format(told) if told else ""
        code = coloured(token.content, told.partition(" ")[0].lower())
        return f'<pre class="code">{label}<code>{code}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002 - its signature
        return f'<pre class="code"><code>{escape(tokens[idx].content)}</code></pre>\n'

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        told = self.renderInlineAsText(token.children, options, env) or "no description"
        return Markup('<a href="{}">[picture: {}]</a>').format(token.attrGet("src"), told)


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)


def prose(text: str, level: int) -> Markup | None:
    """Return Markdown as HTML, its highest headings of a level; None where it is too long to be rendered."""
    if len(text) > LONGEST:
        return None
    tokens = _MARKDOWN.parse(show_control_chars(text))
    _fit(tokens, level)
    cleaned = _CLEANER.clean(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
    return Markup(_scrollable(cleaned))  # noqa: S704 - it was just cleaned


def _fit(tokens: Iterable[Token], level: int) -> None:
    """Give headings their place below those of the page, and columns their side without a style of their own."""
    above: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            above = [tag for tag in above if tag < token.tag] + [token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_DEEPEST, level + len(above) - 1)}"
        if "style" in token.attrs:
            side = _SIDES.get(str(token.attrs.pop("style")))
            token.attrs |= {"class": side} if side else {}
        _tell_paths(token.children or ())


def _tell_paths(tokens: Iterable[Token]) -> None:
    """Write out where a link leads that does not lead to the web: to files that the reader has not, mostly."""
    left = ""
    for token in tokens:
        if token.type == "link_open":
            link = str(token.attrGet("href"))
            left = "" if link.lower().startswith(_LINKS) else link
            token.type = "text" if left else token.type
        elif token.type == "link_close" and left:
            token.type, token.content = "text", f" ({left})"


def _scrollable(cleaned: str) -> str:
    """Let wide tables be scrolled by themselves, with the keyboard too; in a cleaned text a tag is a tag."""
    box = '<div class="wide" role="group" aria-label="Table" tabindex="0"><table>'
    return cleaned.replace("<table>", box).replace("</table>", "</table></div>")
