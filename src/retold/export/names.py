"""Names out of transcripts, made fit for one line: they may hold anything, and any amount of it."""

from __future__ import annotations

import unicodedata

from retold.export.table import character_width, fitted
from retold.projects.matching import last_name

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAMELESS = "(unknown)"
LONGEST = 400
"""How much of a name is looked at: more than any line has room for."""
_HASH = 64
_EMOJI_STYLE = "\ufe0f"  # widens what stands before it in some terminals, and in others not


def clean(name: str) -> str:
    """Return a name on one line, without what has no width or changes the direction of what follows."""
    name = name[:LONGEST]
    if not (name.isascii() and name.isprintable()):
        name = "".join(map(_shown, name))
    return " ".join(name.split()) or NAMELESS


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    if character == _EMOJI_STYLE or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return _accent(character)
    return character if character.isprintable() else "\ufffd"


def _accent(character: str) -> str:
    """Keep what scripts are written with; marks that are only there to turn or to hide go."""
    return character if unicodedata.combining(character) else ""


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def shortened(text: str, width: int) -> str:
    """Return a text in at most `width` columns."""
    return text if width_of(text) <= width else fitted(text, width).rstrip()


def end_of(path: str, width: int) -> str:
    """Return a path in at most `width` columns: its end tells most."""
    if width_of(path) <= width:
        return path
    kept, used = "", 1
    for character in reversed(path):
        used += character_width(character)
        if used > width:
            break
        kept = character + kept
    return "…" + kept


def project_names(roots: Iterable[str]) -> dict[str, str]:
    """Return for each root its last name, with as much of the path before it as tells it from the others."""
    roots = list(dict.fromkeys(roots))
    names = {root: _ends(root, 1) for root in roots}
    for parts in range(2, 2 + max(map(_depth, roots), default=0)):
        alike = list(_alike(names))
        if not alike:
            break
        names |= {root: _ends(root, parts) for root in alike}
    return names


def _alike(names: dict[str, str]) -> Iterator[str]:
    shown: dict[str, list[str]] = {}
    for root, name in names.items():
        shown.setdefault(name, []).append(root)
    for roots in shown.values():
        if len(roots) > 1:
            yield from roots


def _ends(root: str, parts: int) -> str:
    if len(root) == _HASH and not set(root) - set("0123456789abcdef"):
        return root[:8] if parts == 1 else root
    if parts == 1:
        return last_name(root) or root
    return "/".join(root.replace("\\", "/").rstrip("/").split("/")[-parts:])


def _depth(root: str) -> int:
    return min(root.replace("\\", "/").count("/"), LONGEST)
