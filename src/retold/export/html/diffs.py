"""Diffs in their colours."""

from markupsafe import Markup, escape

from retold.export.diffs import DiffChange
from retold.export.html.clip import clipped

_KINDS = {"+": "added", "-": "removed", "@": "hunk", "*": "hunk"}
_HEADS = ("+++", "---", "***", "Index: ", "====")


def diff_box(change: DiffChange, key: str) -> Markup:
    """Return a diff in its colours; each line says with its first character what became of it, too."""
    return clipped(change.diff, key, _diff)


def _diff(text: str) -> Markup:
    lines = "\n".join(map(_diff_line, text.split("\n")))
    return Markup(f'<pre class="diff" dir="ltr">{lines}</pre>')  # noqa: S704 - its lines are escaped


def _diff_line(line: str) -> str:
    kind = "hunk" if line.startswith(_HEADS) else _KINDS.get(line[:1])
    return f'<span class="{kind}">{escape(line)}</span>' if kind else str(escape(line))
