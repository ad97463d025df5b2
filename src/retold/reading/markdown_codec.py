"""Words in a Markdown page, and back: whatever somebody said, it ends where it ends, and is read again letter by letter.

Words stand in a page as Markdown only where it is certain how a parser takes them; else they stand in a fence. Of the
former, headings are two levels lower, so that the page keeps its outline, and what would begin a tag outside of code has
a backslash before it. Both can be taken back: *k* backslashes before a `<` become 2*k* + 1, which a page shows as *k*.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from retold.model.serialization import encoded
from retold.reading.json_decode import Decoded, decode

Look = Literal["plain", "quote", "fence", "quoted fence"]

LOWERED = 2
"""How many levels of headings a page keeps for itself."""
_LOWEST = 6
_TAGS = re.compile(r"<https?://[^\s<>`]*>|(?<!\\)(\\*+)<(?=[A-Za-z/!?])")
_BACKTICKS = re.compile("`+")
_UNCERTAIN = ("](", "]:", "|", "\\`")
"""With these beside it, a backtick need not begin code: link targets and cells of tables are cut out first."""
_HEADING = re.compile(r"^( {0,3})(\\*)(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r"^( {0,3})(\\*)(=+|-+)(?=[ \t]*$)")
_FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_LIKE_A_FENCE = re.compile(r"^[ \t>*+\-\d.)]*(?:`{3,}[^`]*$|~{3,})")
_ALL_BACKTICKS = re.compile("`{3,}")
_ANY_TAG = re.compile("<[A-Za-z/!?]")
_ANY_HEADING = re.compile(r"(?:^|\n) {0,3}\\*#{1,6}(?:[ \t\n]|$)")
_ANY_UNDERLINE = re.compile(r"\n {0,3}\\*(?:=+|-+)[ \t]*(?:\n|$)")

Segment = tuple[bool, list[str]]


def shown(text: str, *, is_quoted: bool = False) -> tuple[str, Look]:
    """Return words as lines of a page, and how they stand there."""
    plain = as_markdown(text)
    if plain is None:
        lines = fenced(text, "markdown")
        # A lone carriage return ends a line for a parser, and with it a quote, but no fence.
        return (_quoted(lines), "quoted fence") if is_quoted and "\r" not in text else (lines, "fence")
    return (_quoted(plain), "quote") if is_quoted else (plain, "plain")


def said(lines: str, look: str) -> str | None:
    """Return the words that stand in lines of a page; None if they do not stand there in that way."""
    if look.startswith("quote"):
        unquoted = _unquoted(lines)
        return None if unquoted is None else said(unquoted, "fence" if look == "quoted fence" else "plain")
    return unfenced(lines) if look == "fence" else _as_said(lines)


def as_markdown(text: str) -> str | None:
    """Return words as Markdown that keeps to itself; None where it is not certain that it would."""
    if "\r" in text:  # ends a line for a parser
        return None
    return _changed(text, _lowered, _escaped) if _is_special(text) else text


def _is_special(text: str) -> bool:
    """Tell whether there may be something to change: mostly there is not, and this is the fast way to know."""
    return bool(
        "```" in text
        or "~~~" in text
        or ("<" in text and _ANY_TAG.search(text))
        or ("#" in text and _ANY_HEADING.search(text))
        or _ANY_UNDERLINE.search(text)
    )


def _as_said(lines: str) -> str:
    changed = _changed(lines, _raised, _unescaped) if _is_special(lines) else lines
    return lines if changed is None else changed


def fenced(text: str, info: str = "") -> str:
    """Return text in a fence that is longer than any in it."""
    longest = max(map(len, _ALL_BACKTICKS.findall(text)), default=2) if "```" in text else 2
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def unfenced(lines: str) -> str | None:
    """Return what stands between the fences."""
    first, _, rest = lines.partition("\n")
    text, found, last = rest.rpartition("\n")
    if not first.startswith("```"):
        return None
    fence = first[: len(first) - len(first.lstrip("`"))]
    return text if found and last == fence else None


def _quoted(lines: str) -> str:
    return "> " + lines.replace("\n", "\n> ")


def _unquoted(lines: str) -> str | None:
    """Return quoted lines without their marks; editors may have taken the blank behind a mark away."""
    found = lines.split("\n")
    if not all(line.startswith("> ") or line == ">" for line in found):
        return None
    return "\n".join(line[2:] for line in found)


Line = Callable[[str, str], str]
Tags = Callable[[str], str]


def _changed(text: str, line: Line, tags: Tags) -> str | None:
    """Return text with every line and tag outside of code changed; None where it is not certain what is code."""
    segments = _segments(text)
    if segments is None:
        return None
    return "\n".join(
        "\n".join(lines) if is_code else "\n".join(_paragraphs(lines, line, tags))
        for is_code, lines in segments
    )


def _segments(text: str) -> list[Segment] | None:
    """Return text and fenced code by turns; None where a parser might see another end of the code.

    A fence at the margin or up to three blanks from it is one whatever stands around it. It certainly goes on to its end
    if nothing in it is further left, as it would be if a list ended there, and nothing else in it could close it.
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
    """Tell whether a line closes a fence; None where that depends on what stands around it."""
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
    """Yield lines, changed; whether a backtick begins code is known of the whole paragraph."""
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
    """Tell whether all code in a paragraph begins and ends on one line, and every backtick is of such code."""
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
    """Return the pieces of a line: text and code by turns, the first and the last are text.

    Code lies between backticks and the next as many backticks. Each run of backticks is looked at once.
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


def _lowered(line: str, before: str) -> str:
    """Lower a heading; of the lowest, and of those with a line under them, only the words stay."""
    heading = _HEADING.match(line)
    if heading:
        indent, escapes, marks = heading.groups()
        if len(marks) + LOWERED > _LOWEST:
            return f"{indent}\\{line[len(indent) :]}"
        return line if escapes else f"{indent}{'#' * LOWERED}{line[len(indent) :]}"
    underline = _UNDERLINE.match(line) if before.strip(" \t") else None
    return f"{underline[1]}\\{line[len(underline[1]) :]}" if underline else line


def _raised(line: str, before: str) -> str:
    """Take back what `_lowered` did."""
    heading = _HEADING.match(line)
    if heading:
        indent, escapes, marks = heading.groups()
        if escapes:
            return f"{indent}{line[len(indent) + 1 :]}" if len(marks) + LOWERED > _LOWEST else line
        return f"{indent}{line[len(indent) + LOWERED :]}" if len(marks) > LOWERED else line
    underline = _UNDERLINE.match(line) if before.strip(" \t") else None
    return f"{underline[1]}{line[len(underline[1]) + 1 :]}" if underline and underline[2] else line


def _escaped(line: str) -> str:
    return _TAGS.sub(lambda tag: tag[0] if tag[1] is None else f"{tag[1] * 2}\\<", line)


def _unescaped(line: str) -> str:
    return _TAGS.sub(lambda tag: f"{tag[1][: len(tag[1]) // 2]}<" if tag[1] else tag[0], line)


BEGIN, END = "<!-- retold ", " -->"
PAGE = 1
"""The version of the marks."""


def mark(tree: dict[str, Any]) -> str:
    """Return a mark, on one line, for every editor; nothing in it can end the comment."""
    data = encoded(tree)
    text = data.decode() if data.isascii() else json.dumps(tree, separators=(",", ":"))
    return BEGIN + text.replace("--", "-\\u002d") + END


def marked(line: str) -> dict[str, Any] | None:
    """Return what a mark says; None where a line is none."""
    if not line.startswith(BEGIN) or not line.rstrip().endswith(END):
        return None
    found = decode(line.rstrip()[len(BEGIN) : -len(END)].encode(errors="replace"))
    return found.value if isinstance(found, Decoded) and type(found.value) is dict else None
