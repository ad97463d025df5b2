"""Every story there is."""

from importlib.resources import files

from retold.demo.script import parse_stories
from retold.demo.story import Story


def stories() -> list[Story]:
    """Return the stories of all scripts; one that another was forked from stands before it."""
    folder = files("retold.demo") / "stories"
    scripts = sorted(
        (script for script in folder.iterdir() if script.name.endswith(".story")),
        key=lambda script: script.name,
    )
    return [story for script in scripts for story in parse_stories(script.read_text(encoding="utf-8"))]
