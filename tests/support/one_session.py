"""A person whose archive holds a single conversation, about herons."""

from pathlib import Path

from support.gemini_home import GeminiHome, gemini, user
from support.person import Person

QUESTION = "Where do herons nest?"


def person_with_one_session(folder: Path) -> Person:
    """Return a person with one archived conversation about herons."""
    home = GeminiHome(folder / "ann")
    home.lines("den", 1, 1, [user("u1", 1, QUESTION), gemini("g1", 2, "In reeds.")], kind="main")
    person = Person(home.folder)
    person.sync()
    return person
