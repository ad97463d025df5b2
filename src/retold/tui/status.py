"""The lines that say how things are, and what can be done about them."""

from collections.abc import Sequence

from rich.text import Text

from retold.agents import TITLES
from retold.export.transcript import plural
from retold.search.quick_find import TitleMatch
from retold.tui.answers import ArchiveQueries, due
from retold.tui.found import ListFinder
from retold.tui.words import styled


def status_line(finder: ListFinder, found: Sequence[TitleMatch], said: str) -> Text:
    """Return what was found, or what there is to say."""
    if said:
        return styled([("match", said)])
    if finder.note:
        return styled([("bad", finder.note)])
    if not finder.typed:
        return styled([("faint", f"{plural(finder.total, 'conversation')}, the newest first")])
    text = sum(1 for match in found if not match.is_named)
    told = f"{len(found) - text} by name, {text} more in the text ≡" if found else "nothing"
    return styled([("faint", f"{told}{', searching …' if finder.is_searching else ''}")])


def warning(archive: ArchiveQueries) -> str:
    """Return what goes soon, in a line; nothing, if nothing does."""
    told = [
        f"{TITLES.get(agent, agent)} {count:,} {f'in {days} d' if days else 'next start'}"
        for agent, count, days in due(archive)
    ]
    return f"soon deleted, archived: {', '.join(told)} (^d)" if told else ""


def keys_line(keys: str, width: int) -> Text:
    """Return the keys that there is room for, each before what it does."""
    line = Text(no_wrap=True, end="")
    for told in keys.split("|"):
        key, _, deed = told.partition(" ")
        if line.cell_len + len(told) <= width:
            line.append(key, "bold").append(f" {deed}  ", "dim")
    return line
