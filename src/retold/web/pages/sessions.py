"""All conversations, the newest first."""

from retold.archive.record import Record
from retold.query.listing import listed
from retold.query.wanted import Wanted
from retold.web.answer import Answer, Asked, Page, Shown

PAGE = 50


def sessions(_asked: Asked, record: Record) -> Answer:
    """Answer with the list."""
    return Shown("sessions.html", {"rows": listed(record, Wanted(), PAGE)})


PAGES = (Page("/", sessions),)
