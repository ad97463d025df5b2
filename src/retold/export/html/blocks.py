"""The boxes that a page is made of: each holds one text, and nothing in that text reaches beyond it."""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
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
from retold.export.text.escape import HIDDEN
from retold.export.transcript import as_json, one_line
from retold.model.session import Attachment

LONGEST = 20_000
"""The longest code that is coloured: a lexer may take long over what is no code at all."""
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
"""What people write: a transcript does not choose among all lexers there are."""
_ENDINGS = {
    "cc": "cpp", "cs": "csharp", "dockerfile": "docker", "ex": "elixir", "h": "c", "hpp": "cpp", "hs": "haskell",
    "htm": "html", "kt": "kotlin", "makefile": "make", "mjs": "js", "mk": "make", "proto": "protobuf", "tf": "terraform",
}  # fmt: skip
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def coloured(code: str, language: str) -> Markup:
    """Return code in colours, its every character escaped; it must have been made visible before."""
    lexer = _lexer(language) if language in LANGUAGES and _is_short(code) else None
    if lexer is None:
        return escape(code)
    return Markup(highlight(code, lexer, _FORMATTER).removesuffix("\n"))  # noqa: S704 - Pygments escapes it


def language_of(path: str) -> str:
    """Return the language that a file's name tells; nothing where it tells none that we know."""
    name = os.path.basename(path.replace("\\", "/")).lower()
    ending = name.rpartition(".")[2]
    language = _ENDINGS.get(ending, ending)
    return language if language in LANGUAGES else ""


@cache
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:  # in another version of Pygments it may have another name
        return None


def _is_short(code: str) -> bool:
    return len(code) <= LONGEST and max(map(len, code.split("\n"))) <= _LONGEST_LINE


_COLOURS = re.compile("\x1b\\[[0-9;:]*[mK]")
"""What a terminal takes for colours, and for the end of a line that is written again."""
_NEVER = f"{HIDDEN}\xad"
_SUSPECT = re.compile(f"[{_NEVER}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""What may have to be shown: few texts have any of it, and to look for one is much faster than what comes then."""
_HIDDEN = re.compile(
    f"[{_NEVER}]"
    # Variants of a character may be chosen once, and only of those that have any: more of them carry a hidden text.
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)


def show_control_chars(text: str) -> str:
    """Return a text in which every character can be seen, and none changes the direction of others."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(_sign, text) if _SUSPECT.search(text) else text


def _sign(found: re.Match[str]) -> str:
    character = found.group()
    return "\ufffd" if "\ud800" <= character <= "\udfff" else f"⟨U+{ord(character):04X}⟩"


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


LARGEST = 8_000_000
"""The largest picture that is put into a page, in bytes."""
_BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def picture(attachment: Attachment, told: str) -> Markup | None:
    """Return an attachment as a picture in the page itself; None for what is no picture or cannot be trusted to be one."""
    data = attachment.data
    if data is None or len(data) > LARGEST * 4 // 3 + 4:
        return None
    try:
        found = b64decode(data, validate=True)
    except (Error, ValueError):
        return None
    kind = _kind(found)
    if kind is None:
        return None
    source = f"data:{kind};base64,{b64encode(found).decode()}"
    return Markup('<p class="picture"><img src="{}" alt="{}"></p>').format(source, told)


def _kind(data: bytes) -> str | None:
    """Return what a picture is, by how it begins: what the transcript says of it may be anything."""
    for kind, beginning in _BEGINNINGS.items():
        if data.startswith(beginning) and (kind != "image/webp" or data[8:12] == b"WEBP"):
            return kind
    return None


HEAD, TAIL = 60_000, 20_000
"""How many characters of a longer text are shown: some twenty screens, which a browser on a phone can lay out."""
_CUT = Markup(
    '<p class="cut">{:,} characters are left out here; <code>retold show {} --json</code> has them all.</p>'
)


def left_out_of(text: str) -> int:
    """Return how many characters of a text are not shown."""
    return max(0, len(text) - HEAD - TAIL)


def clipped(text: str, key: str, boxed: Callable[[str], Markup]) -> Markup:
    """Return a text in a box; of a very long one the beginning and the end, and where the rest is."""
    left_out = left_out_of(text)
    if not left_out:
        return boxed(show_control_chars(text))
    return (
        boxed(show_control_chars(text[:HEAD]))
        + _CUT.format(left_out, show_control_chars(key))
        + boxed(show_control_chars(text[-TAIL:]))
    )


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


DEEPEST = 6
"""How deep subagents are told inside of each other; HTML has as many headings."""


class RenderContext(msgspec.Struct, frozen=True):
    """A conversation on a page: the page's own, or that of a subagent inside a call."""

    telling: ExportSession
    choice: ExportOptions
    prefix: str = "m"
    """What the anchors of its messages begin with."""
    level: int = 2
    """The level of its prompts' headings; answers are a level below, in subagents on the same."""
    depth: int = 0
    first: int | None = None
    """The place of the first entry in the timeline that this is a part of: anchors are places then, else numbers of messages."""

    @property
    def key(self) -> str:
        """The key of the session."""
        return self.telling.session.key

    def inside(self, child: str | None, anchor: str) -> RenderContext | None:
        """Return the frame of a subagent that is told inside of this conversation."""
        telling = self.telling.subagents.get(child) if child else None
        if telling is None or self.depth == DEEPEST:
            return None
        return RenderContext(telling, self.choice, f"{anchor}-", min(5, self.level + 3), self.depth + 1)
