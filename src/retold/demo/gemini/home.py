"""All of Gemini CLI's home: sessions, the prompts of each project, and which folder belongs to which project."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from retold.demo.cast import File, StorySetting
from retold.demo.gemini.sessions import DemoSession, session, session_files
from retold.demo.story import Ask, Save, Story
from retold.demo.wording import Json, document, stamp

LOST = "lost"
"""Marks a story of which Gemini CLI has deleted the file: the log of prompts is all there is."""
SETTINGS = {"security": {"auth": {"selectedType": "oauth-personal"}}}


def gemini_files(stories: Sequence[Story], setting: StorySetting) -> Iterator[File]:
    """Yield every file of the home."""
    made = [session(story, setting) for story in stories]
    for one in made:
        if LOST not in one.story.marks:
            yield from session_files(one)
    yield from _logs(made)
    yield from _places(made, setting)


def _logs(made: Sequence[DemoSession]) -> Iterator[File]:
    """Yield the prompts of each folder, in their order."""
    typed: dict[str, list[tuple[datetime, Json]]] = defaultdict(list)
    for one in made:
        prompts = [(moment.at, _typed(moment.event)) for moment in one.moments]
        for number, (at, text) in enumerate((at, text) for at, text in prompts if text):
            entry = {"sessionId": one.id, "messageId": number, "type": "user", "message": text}
            typed[one.folder].append((at, {**entry, "timestamp": stamp(at)}))
    for folder, entries in typed.items():
        ordered = sorted(entries, key=lambda entry: entry[0])
        yield File(f"{folder}/logs.json", document([entry for _, entry in ordered]), ordered[-1][0])


def _typed(event: object) -> str | None:
    match event:
        case Ask(text):
            return text
        case Save(tag):
            return f"/chat save {tag}"
    return None


def _places(made: Sequence[DemoSession], setting: StorySetting) -> Iterator[File]:
    """Yield what tells the projects; a folder named by a hash tells nothing."""
    projects = sorted({one.story.project for one in made if one.story.form != "hashed"})
    roots = {setting.root(project): project for project in projects}
    at = max(one.ended_at for one in made)
    yield File(".gemini/projects.json", document({"projects": roots}), at)
    yield File(".gemini/settings.json", document(SETTINGS), at)
    for root, project in roots.items():
        yield File(f".gemini/tmp/{project}/.project_root", root, at)
        yield File(f".gemini/history/{project}/.project_root", root, at)
