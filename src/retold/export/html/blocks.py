"""Boxes of HTML: text, code, rendered Markdown, pictures and folds. No text can reach beyond its box."""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import msgspec
import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.text.formatting import HIDDEN
from retold.export.transcript import format_json, one_line
from retold.model.session import Attachment

LONGEST = 20_000
"""Characters of the longest text that is highlighted or rendered: lexers are slow on text that is no code, and Markdown
can be written so that rendering takes the square of its length."""
_LONGEST_LINE = 2_000
LANGUAGES = frozenset(
    (
        "bash", "c", "clojure", "cmake", "console", "cpp", "csharp", "css", "dart", "diff", "docker", "elixir",
        "erlang", "fish", "fsharp", "go", "graphql", "groovy", "haskell", "hcl", "html", "http", "ini", "java",
        "javascript", "js", "json", "jsx", "julia", "kotlin", "less", "lua", "make", "markdown", "md", "nginx", "nix",
        "objective-c", "ocaml", "perl", "php", "powershell", "properties", "protobuf", "ps1", "py", "pycon", "python",
        "r", "rb", "rs", "ruby", "rust", "scala", "scss", "sh", "shell", "sql", "swift", "terraform", "toml", "ts",
        "tsx", "typescript", "vim", "xml", "yaml", "yml", "zig", "zsh",
    )
)  # fmt: skip
"""Languages that are highlighted: a transcript must not choose among all lexers."""
_ENDINGS = {
    "cc": "cpp", "cs": "csharp", "dockerfile": "docker", "ex": "elixir", "h": "c", "hpp": "cpp", "hs": "haskell",
    "htm": "html", "kt": "kotlin", "makefile": "make", "mjs": "js", "mk": "make", "proto": "protobuf", "tf": "terraform",
}  # fmt: skip
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def highlight_code(code: str, language: str) -> Markup:
    """Return code as highlighted HTML, escaped; `show_control_chars` must have been applied."""
    is_short = len(code) <= LONGEST and max(map(len, code.split("\n"))) <= _LONGEST_LINE
    lexer = _lexer(language) if language in LANGUAGES and is_short else None
    if lexer is None:
        return escape(code)
    return Markup(highlight(code, lexer, _FORMATTER).removesuffix("\n"))  # noqa: S704 - Pygments escapes


def language_of_file(path: str) -> str:
    """Return the language of a file by its name; empty if it is none of `LANGUAGES`."""
    name = os.path.basename(path.replace("\\", "/")).lower()
    ending = name.rpartition(".")[2]
    language = _ENDINGS.get(ending, ending)
    return language if language in LANGUAGES else ""


@cache
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:  # its name differs between versions of Pygments
        return None


_COLOURS = re.compile("\x1b\\[[0-9;:]*[mK]")
"""Escape sequences for colours, and for clearing the line before it is rewritten."""
_NEVER = f"{HIDDEN}\xad"
_SUSPECT = re.compile(f"[{_NEVER}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Searched first: few texts match, and the search is much faster than the substitution."""
_HIDDEN = re.compile(
    f"[{_NEVER}]"
    # One variant selector is allowed, and only after characters that have variants: more of them carry a hidden text.
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)


def show_control_chars(text: str) -> str:
    """Return a text in which hidden characters are written out, as ⟨U+202E⟩; colours of terminals are removed."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(_sign, text) if _SUSPECT.search(text) else text


def _sign(found: re.Match[str]) -> str:
    character = found.group()
    return "\ufffd" if "\ud800" <= character <= "\udfff" else f"⟨U+{ord(character):04X}⟩"


_LANGUAGE = 40
_DEEPEST = 6
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_LINKS = ("http://", "https://", "mailto:")
_SIDES = {"text-align:right": "right", "text-align:center": "middle"}


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Keep a link only if it leads to the web: a path would lead to a file of the reader."""
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
    """Highlights code, and makes pictures links, so that nothing is loaded."""

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002 - markdown-it's signature
        token = tokens[idx]
        info = " ".join(token.info.split())[:_LANGUAGE]
        label = Markup('<span class="language">{}</span>').format(info) if info else ""
        code = highlight_code(token.content, info.partition(" ")[0].lower())
        return f'<pre class="code">{label}<code>{code}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002 - markdown-it's signature
        return f'<pre class="code"><code>{escape(tokens[idx].content)}</code></pre>\n'

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        description = self.renderInlineAsText(token.children, options, env) or "no description"
        return Markup('<a href="{}">[picture: {}]</a>').format(token.attrGet("src"), description)


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)


def render_markdown(text: str, level: int) -> Markup | None:
    """Return Markdown as HTML, its highest headings at `level`; None if it is longer than `LONGEST`."""
    if len(text) > LONGEST:
        return None
    tokens = _MARKDOWN.parse(show_control_chars(text))
    _adapt(tokens, level)
    cleaned = _CLEANER.clean(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
    # Each table scrolls in a box of its own, with the keyboard too; a tag in cleaned text is always a tag.
    box = '<div class="wide" role="group" aria-label="Table" tabindex="0"><table>'
    boxed = cleaned.replace("<table>", box).replace("</table>", "</table></div>")
    return Markup(boxed)  # noqa: S704 - it was just cleaned


def _adapt(tokens: Iterable[Token], level: int) -> None:
    """Move headings below those of the page, and replace the style of table columns by a class."""
    above: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            above = [tag for tag in above if tag < token.tag] + [token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_DEEPEST, level + len(above) - 1)}"
        if "style" in token.attrs:
            side = _SIDES.get(str(token.attrs.pop("style")))
            token.attrs |= {"class": side} if side else {}
        _write_out_paths(token.children or ())


def _write_out_paths(tokens: Iterable[Token]) -> None:
    """Replace links that do not lead to the web by their text and target: they mostly lead to files of another machine."""
    path = ""
    for token in tokens:
        if token.type == "link_open":
            link = str(token.attrGet("href"))
            path = "" if link.lower().startswith(_LINKS) else link
            token.type = "text" if path else token.type
        elif token.type == "link_close" and path:
            token.type, token.content = "text", f" ({path})"


LARGEST = 8_000_000
"""Bytes of the largest picture that is embedded."""
_BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def render_picture(attachment: Attachment, description: str) -> Markup | None:
    """Return an attachment as an embedded picture; None if it is not a picture of a known type."""
    data = attachment.data
    if data is None or len(data) > LARGEST * 4 // 3 + 4:
        return None
    try:
        content = b64decode(data, validate=True)
    except (Error, ValueError):
        return None
    kind = _picture_type(content)
    if kind is None:
        return None
    source = f"data:{kind};base64,{b64encode(content).decode()}"
    return Markup('<p class="picture"><img src="{}" alt="{}"></p>').format(source, description)


def _picture_type(data: bytes) -> str | None:
    """Return the media type of a picture by its first bytes, since the transcript may claim anything."""
    for kind, beginning in _BEGINNINGS.items():
        if data.startswith(beginning) and (kind != "image/webp" or data[8:12] == b"WEBP"):
            return kind
    return None


HEAD, TAIL = 60_000, 20_000
"""Characters at both ends of a longer text that are shown: about twenty screens, which a browser on a phone can lay out."""
_CUT = Markup(
    '<p class="cut">{:,} characters are left out here; <code>retold show {} --json</code> has them all.</p>'
)


def clipped_length(text: str) -> int:
    """Return how many characters of a text are left out."""
    return max(0, len(text) - HEAD - TAIL)


def clip_text(text: str, key: str, make_box: Callable[[str], Markup]) -> Markup:
    """Return a text in a box; of a very long text both ends, with a line that says where the rest is."""
    left_out = clipped_length(text)
    if not left_out:
        return make_box(show_control_chars(text))
    return (
        make_box(show_control_chars(text[:HEAD]))
        + _CUT.format(left_out, show_control_chars(key))
        + make_box(show_control_chars(text[-TAIL:]))
    )


def text_box(text: str, key: str, language: str = "") -> Markup:
    """Return a preformatted text, highlighted if it has a language."""
    if not language:
        return clip_text(text, key, Markup('<pre dir="auto">{}</pre>').format)
    code = Markup('<pre class="code" dir="ltr"><code>{}</code></pre>')
    return clip_text(text, key, lambda piece: code.format(highlight_code(piece, language)))


def prompt_box(text: str, key: str) -> Markup:
    """Return a prompt as it was typed, with its line breaks."""
    if clipped_length(text):
        return text_box(text, key)
    return Markup('<p class="said" dir="auto">{}</p>').format(show_control_chars(text.strip("\n")))


def answer_box(text: str, key: str, level: int) -> Markup:
    """Return an answer with its Markdown rendered."""
    rendered = render_markdown(text, level)
    if rendered is None:
        return text_box(text, key)
    return Markup('<div class="prose" dir="auto">{}</div>').format(rendered)


def labelled_box(label: str, content: Markup) -> Markup:
    """Return a box with a label above it."""
    return Markup('<p class="label">{}</p>\n{}').format(show_control_chars(label), content)


def fold(summary: str, content: Markup, kind: str = "aside") -> Markup:
    """Return content that a summary line folds."""
    text = Markup("<bdi>{}</bdi>").format(show_control_chars(one_line(summary)))
    return Markup('<details class="fold {}"><summary>{}</summary>{}</details>').format(kind, text, content)


def error_box(text: str, key: str) -> Markup:
    """Return an error with the label `Error`."""
    return Markup('<div class="failure"><p class="label">Error</p>{}</div>').format(text_box(text, key))


def json_box(value: Any, key: str) -> Markup:
    """Return a value as highlighted JSON."""
    return text_box(format_json(value, indent=2), key, "json")


def attachment_boxes(attachments: Iterable[Attachment]) -> Markup:
    """Return pictures, and other attachments by name and size."""
    return Markup("").join(map(_attached, attachments))


def _attached(attachment: Attachment) -> Markup:
    name = show_control_chars(one_line(attachment.path or attachment.media_type or "something"))
    shown = render_picture(attachment, f"Picture that came along: {name}")
    if shown is not None:
        return shown
    size = f", {len(attachment.data) * 3 // 4:,} bytes that are not shown here" if attachment.data else ""
    return Markup('<p class="attached">Attached: <bdi>{}</bdi>{}</p>').format(name, escape(size))


DEEPEST = 6
"""Levels of subagents that are nested on a page; HTML has as many levels of headings."""


class RenderContext(msgspec.Struct, frozen=True):
    """The conversation that is rendered, and its place on the page: at the top, or inside a call that started it."""

    export: ExportSession
    options: ExportOptions
    prefix: str = "m"
    """Start of the anchors of its messages."""
    level: int = 2
    """Level of the headings of prompts. Answers are one level below, in subagents on the same level."""
    depth: int = 0
    first: int | None = None
    """Place in the timeline of the first entry, if this is a part of a session. Anchors are then places instead of the
    numbers of messages."""

    @property
    def key(self) -> str:
        """The key of the session."""
        return self.export.session.key

    def for_subagent(self, child: str | None, anchor: str) -> RenderContext | None:
        """Return the context of a subagent inside a call; None if it is missing or nested too deep."""
        export = self.export.subagents.get(child) if child else None
        if export is None or self.depth == DEEPEST:
            return None
        return RenderContext(export, self.options, f"{anchor}-", min(5, self.level + 3), self.depth + 1)
