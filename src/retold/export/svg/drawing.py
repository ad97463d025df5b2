"""What all pictures are made of: a frame that says what it shows, and marks that say what they stand for."""

from collections.abc import Iterable

import msgspec
from markupsafe import Markup, escape

from retold.export.html.signs import show_control_chars

SPACE = "http://www.w3.org/2000/svg"


class Datum(msgspec.Struct, frozen=True):
    """A number, what is told of it, and where it leads."""

    value: int | None
    """None where something is, but nobody knows how much."""
    told: str
    """As in `2026-01-27: $1.23`."""
    link: str = ""


class DrawingFrame(msgspec.Struct, frozen=True):
    """What a picture is called, what it tells in a sentence, and how large its field is."""

    kind: str
    """The class by which a page styles it."""
    name: str
    """By which the picture is told from others on a page: letters alone."""
    title: str
    told: str
    width: int
    height: int


def framed(
    frame: DrawingFrame, marks: Iterable[Markup], *, is_linked: bool, is_stretched: bool = False
) -> Markup:
    """Return a picture. One with links in it is a group, since nobody could reach what is inside an image."""
    size = (
        ' preserveAspectRatio="none"' if is_stretched else f' width="{frame.width}" height="{frame.height}"'
    )
    return Markup(
        '<svg xmlns="{}" class="chart {}" viewBox="0 0 {} {}"{} role="{}" aria-labelledby="{}-title"'
        ' aria-describedby="{}-told"><title id="{}-title">{}</title><desc id="{}-told">{}</desc>{}</svg>'
    ).format(
        SPACE, frame.kind, frame.width, frame.height, Markup(size), "group" if is_linked else "img",  # noqa: S704 - ours
        *[frame.name] * 3, show_control_chars(frame.title), frame.name, show_control_chars(frame.told), Markup("").join(marks),
    )  # fmt: skip


def mark(datum: Datum, shape: Markup, *, is_first: bool = False) -> Markup:
    """Return a mark that tells what it stands for, and leads there; of all in a picture one stands in the way of Tab."""
    told = escape(show_control_chars(datum.told))
    inside = f"<title>{told}</title>{escape(shape)}"  # put together by hand: a page has hundreds of them
    if not datum.link:
        return Markup(f"<g>{inside}</g>")  # noqa: S704 - escaped above
    place = f'href="{escape(datum.link)}" tabindex="{0 if is_first else -1}"'
    return Markup(f'<a {place} aria-label="{told}">{inside}</a>')  # noqa: S704 - escaped above


def rect(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    """Return a rectangle."""
    sides = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return Markup(f'<rect class="{escape(kind)}" {sides}/>')  # noqa: S704 - numbers, and what is escaped


def text(kind: str, x: float, y: float, words: str) -> Markup:
    """Return words at a place; they are told otherwise to whoever does not see them."""
    place = Markup(f'x="{x:g}" y="{y:g}"')  # noqa: S704 - numbers
    return Markup('<text class="{}" {} aria-hidden="true">{}</text>').format(
        kind, place, show_control_chars(words)
    )
