"""Encodes texts in a Markdown page so that each ends where it should and can be decoded letter by letter.

A text is Markdown if every parser surely treats it alike; else it is fenced. In Markdown, headings are two levels lower, so
that the page keeps its outline, and a backslash precedes the start of a tag outside of code. Both can be undone: *k*
backslashes before a `<` become 2*k* + 1, which a page shows as *k*.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from retold.model.serialization import encode_tree
from retold.reading.json_decode import JsonValue, decode

WordsForm = Literal["plain", "quote", "fence", "quoted fence"]
HEADING_SHIFT = 2
"""How many levels of headings a page uses itself."""
_LOWEST = 6
_TAGS = re.compile(r"<https?://[^\s<>`]*>|(?<!\\)(\\*+)<(?=[A-Za-z/!?])")
_BACKTICKS = re.compile("`+")
_UNCERTAIN = ("](", "]:", "|", "\\`")
"""Next to these, a backtick need not begin code: parsers cut out link targets and cells of tables first."""
_HEADING = re.compile(r"^( {0,3})(\\*)(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r"^( {0,3})(\\*)(=+|-+)(?=[ \t]*$)")
_FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_LIKE_A_FENCE = re.compile(r"^[ \t>*+\-\d.)]*(?:`{3,}[^`]*$|~{3,})")
_ALL_BACKTICKS = re.compile("`{3,}")
_ANY_TAG = re.compile("<[A-Za-z/!?]")
_ANY_HEADING = re.compile(r"(?:^|\n) {0,3}\\*#{1,6}(?:[ \t\n]|$)")
_ANY_UNDERLINE = re.compile(r"\n {0,3}\\*(?:=+|-+)[ \t]*(?:\n|$)")
Segment = tuple[bool, list[str]]


def encode_words(text: str, *, is_quoted: bool = False) -> tuple[str, WordsForm]:
    """Return a text as lines of a page, and the form of these."""
    plain = encode_markdown(text)
    if plain is None:
        lines = fence_text(text, "markdown")
        # A lone carriage return ends a line for a parser, and so a quote, but no fence.
        return (_quote(lines), "quoted fence") if is_quoted and "\r" not in text else (lines, "fence")
    return (_quote(plain), "quote") if is_quoted else (plain, "plain")


def decode_words(lines: str, look: str) -> str | None:
    """Return the text in lines of a page; None if they do not have this form."""
    if look.startswith("quote"):
        unquoted = _unquote(lines)
        return (
            None
            if unquoted is None
            else decode_words(unquoted, "fence" if look == "quoted fence" else "plain")
        )
    return unfence_text(lines) if look == "fence" else _decode_markdown(lines)


def encode_markdown(text: str) -> str | None:
    """Return a text as Markdown that affects nothing around it; None if that is uncertain."""
    if "\r" in text:  # ends a line for a parser
        return None
    return _change_outside_code(text, _lower_heading, _escape_tags) if _is_special(text) else text


def _is_special(text: str) -> bool:
    """Return quickly whether there may be something to change, which is rare."""
    return bool(
        "```" in text
        or "~~~" in text
        or ("<" in text and _ANY_TAG.search(text))
        or ("#" in text and _ANY_HEADING.search(text))
        or _ANY_UNDERLINE.search(text)
    )


def _decode_markdown(lines: str) -> str:
    changed = _change_outside_code(lines, _raise_heading, _unescape_tags) if _is_special(lines) else lines
    return lines if changed is None else changed


def fence_text(text: str, info: str = "") -> str:
    """Return a text in a fence that is longer than any in it."""
    longest = max(map(len, _ALL_BACKTICKS.findall(text)), default=2) if "```" in text else 2
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def unfence_text(lines: str) -> str | None:
    """Return the text between the fences."""
    first, _, rest = lines.partition("\n")
    text, found, last = rest.rpartition("\n")
    if not first.startswith("```"):
        return None
    fence = first[: len(first) - len(first.lstrip("`"))]
    return text if found and last == fence else None


def _quote(lines: str) -> str:
    return "> " + lines.replace("\n", "\n> ")


def _unquote(lines: str) -> str | None:
    """Return quoted lines without their marks; editors may have removed the blank behind a mark."""
    found = lines.split("\n")
    if not all(line.startswith("> ") or line == ">" for line in found):
        return None
    return "\n".join(line[2:] for line in found)


Line = Callable[[str, str], str]
Tags = Callable[[str], str]


def _change_outside_code(text: str, line: Line, tags: Tags) -> str | None:
    """Return a text with every line and tag outside of code changed; None if it is uncertain what is code."""
    segments = _segments(text)
    if segments is None:
        return None
    return "\n".join(
        "\n".join(lines) if is_code else "\n".join(_paragraphs(lines, line, tags))
        for is_code, lines in segments
    )


def _segments(text: str) -> list[Segment] | None:
    """Return text and fenced code by turns; None if a parser might see another end of the code.

    A fence at the margin or up to three blanks from it is one in any context. It surely extends to its end if nothing in it is
    further left, as it would be if a list ended there, and nothing else in it could close it.
    """
    segments: list[Segment] = []
    fence: re.Match[str] | None = None
    for line in text.split("\n"):
        if fence is None:
            fence = _FENCE.match(line)
            if fence is None and _LIKE_A_FENCE.match(line):
                return None
            _add(segments, line, is_code=fence is not None, is_new=fence is not None)
            continue
        segments[-1][1].append(line)
        match _end(line, fence):
            case None:
                return None
            case True:
                fence = None
    return None if fence is not None else segments


def _add(segments: list[Segment], line: str, *, is_code: bool, is_new: bool) -> None:
    if is_new or not segments or segments[-1][0] != is_code:
        segments.append((is_code, []))
    segments[-1][1].append(line)


def _end(line: str, fence: re.Match[str]) -> bool | None:
    """Return whether a line closes a fence; None if that depends on its context."""
    bare = line.strip(" \t")
    indent = len(line) - len(line.lstrip(" "))
    margin, mark = len(fence[1]), fence[2]
    is_close = len(bare) >= len(mark) and not bare.strip(mark[0])
    if is_close and not line.startswith("\t"):
        if indent == margin or (margin == 0 and indent < 4):  # noqa: PLR2004 - from there on it is code
            return True
        return None if margin else False
    is_left = bool(bare) and indent < margin and not line.startswith("\t")
    return None if is_left or (is_close and margin) else False


def _paragraphs(lines: list[str], line: Line, tags: Tags) -> Iterator[str]:
    """Yield the changed lines; the whole paragraph decides whether a backtick begins code."""
    start = 0
    for end in (*(number for number, text in enumerate(lines) if not text.strip(" \t")), len(lines)):
        paragraph = lines[start:end]
        change = _outside_code(tags) if _is_certain(paragraph) else tags
        before = ""
        for text in paragraph:
            yield change(line(text, before))
            before = text
        yield from lines[end : end + 1]
        start = end + 1


def _is_certain(paragraph: list[str]) -> bool:
    """Return whether all code in a paragraph begins and ends on one line, and every backtick belongs to such code."""
    return not any(any("`" in text for text in _split_code(line)[::2]) for line in paragraph) and not any(
        mark in line for mark in _UNCERTAIN for line in paragraph
    )


def _outside_code(tags: Tags) -> Tags:
    """Return a change that leaves the code in a line as it is."""

    def change(line: str) -> str:
        pieces = _split_code(line)
        pieces[::2] = [tags(text) for text in pieces[::2]]
        return "".join(pieces)

    return change


def _split_code(line: str) -> list[str]:
    """Return the pieces of a line: text and code by turns, with text first and last.

    Code extends from backticks to the next run of as many backticks. Each run is looked at once.
    """
    runs = list(_BACKTICKS.finditer(line)) if "`" in line else []
    closes: list[int | None] = [None] * len(runs)
    following: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = len(runs[number][0])
        closes[number] = following.get(length)
        following[length] = number
    pieces: list[str] = []
    end = number = 0
    while number < len(runs):
        close = closes[number]
        if close is not None:
            start = runs[number].start()
            pieces += (line[end:start], line[start : runs[close].end()])
            end, number = runs[close].end(), close
        number += 1
    return [*pieces, line[end:]]


def _lower_heading(line: str, before: str) -> str:
    """Lower a heading; escape one of the lowest levels, and the line under a heading."""
    heading = _HEADING.match(line)
    if heading:
        indent, escapes, marks = heading.groups()
        if len(marks) + HEADING_SHIFT > _LOWEST:
            return f"{indent}\\{line[len(indent) :]}"
        return line if escapes else f"{indent}{'#' * HEADING_SHIFT}{line[len(indent) :]}"
    underline = _UNDERLINE.match(line) if before.strip(" \t") else None
    return f"{underline[1]}\\{line[len(underline[1]) :]}" if underline else line


def _raise_heading(line: str, before: str) -> str:
    """Undo `_lower_heading`."""
    heading = _HEADING.match(line)
    if heading:
        indent, escapes, marks = heading.groups()
        if escapes:
            return f"{indent}{line[len(indent) + 1 :]}" if len(marks) + HEADING_SHIFT > _LOWEST else line
        return f"{indent}{line[len(indent) + HEADING_SHIFT :]}" if len(marks) > HEADING_SHIFT else line
    underline = _UNDERLINE.match(line) if before.strip(" \t") else None
    return f"{underline[1]}{line[len(underline[1]) + 1 :]}" if underline and underline[2] else line


def _escape_tags(line: str) -> str:
    return _TAGS.sub(lambda tag: tag[0] if tag[1] is None else f"{tag[1] * 2}\\<", line)


def _unescape_tags(line: str) -> str:
    return _TAGS.sub(lambda tag: f"{tag[1][: len(tag[1]) // 2]}<" if tag[1] else tag[0], line)


BEGIN, END = "<!-- retold ", " -->"
PAGE = 1
"""The version of the marks."""


def format_mark(tree: dict[str, Any]) -> str:
    """Return a mark on one line, as a comment that its content cannot end."""
    data = encode_tree(tree)
    text = data.decode() if data.isascii() else json.dumps(tree, separators=(",", ":"))
    return BEGIN + text.replace("--", "-\\u002d") + END


def parse_mark(line: str) -> dict[str, Any] | None:
    """Return the content of a mark; None if a line is none."""
    if not line.startswith(BEGIN) or not line.rstrip().endswith(END):
        return None
    found = decode(line.rstrip()[len(BEGIN) : -len(END)].encode(errors="replace"))
    return found.value if isinstance(found, JsonValue) and type(found.value) is dict else None
