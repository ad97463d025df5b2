"""Texts of any length: a page shows the beginning and the end of a very long one, and says what it does not show."""

from collections.abc import Callable

from markupsafe import Markup

from retold.export.html.signs import show_control_chars

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
