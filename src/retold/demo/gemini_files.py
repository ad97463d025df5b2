"""The files of one story in Gemini CLI's home: the session, its subagents, twins, ghosts and checkpoints."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

import msgspec

from retold.demo.gemini import Recorder, Scene, as_parts
from retold.demo.story import Ask, Later, Save, Story
from retold.demo.timeline import (
    INSTRUCTIONS,
    Acted,
    Dice,
    File,
    Json,
    Moment,
    Stage,
    StoryAnswer,
    StorySetting,
    document,
    lines,
    report,
    stamp,
)

SUBAGENT_MODEL = "gemini-3.8-flash"


class DemoSession(msgspec.Struct, frozen=True):
    """A story of Gemini CLI while its files are made."""

    story: Story
    setting: StorySetting
    dice: Dice
    id: str
    moments: tuple[Moment, ...]

    @property
    def folder(self) -> str:
        """The project's folder: named by a hash up to 0.28."""
        project = self.story.project
        name = self.setting.project_hash(project) if self.story.form == "hashed" else project
        return f".gemini/tmp/{name}"

    @property
    def started_at(self) -> datetime:
        """When the first thing was said."""
        return self.moments[0].at

    @property
    def ended_at(self) -> datetime:
        """When the last was."""
        return self.moments[-1].ended_at

    @property
    def scene(self) -> Scene:
        """What all messages have in common."""
        root = self.setting.root(self.story.project)
        return Scene(root, self.story.model, self.story.form, self.dice)

    def metadata(self, at: datetime, updated_at: datetime) -> Json:
        """Return what a file says about its session."""
        return {
            "sessionId": self.id,
            "projectHash": self.setting.project_hash(self.story.project),
            "startTime": stamp(at),
            "lastUpdated": stamp(updated_at),
        }

    def stem(self, at: datetime) -> str:
        """Return the name of a file that was begun at a moment."""
        return f"{self.folder}/chats/session-{at:%Y-%m-%dT%H-%M}-{self.id[:8]}"

    def recorder(self) -> Recorder:
        """Return a file in JSON lines, still empty."""
        return Recorder(self.scene, self.id, str(self.setting.home / self.folder))


def session(story: Story, setting: StorySetting) -> DemoSession:
    """Return a story of Gemini CLI with its times and its id."""
    dice = Dice("gemini", story.id)
    stage = Stage(setting.start(story.when), INSTRUCTIONS["gemini"], dice)
    return DemoSession(story, setting, dice, dice.uuid(), tuple(stage.play(story.beats)))


def session_files(made: DemoSession) -> Iterator[File]:
    """Yield every file of a session."""
    if made.story.form == "lines":
        yield from _as_lines(made)
    else:
        yield from _as_document(made)


def _as_lines(made: DemoSession) -> Iterator[File]:
    recorder = made.recorder()
    at = made.started_at
    recorder.begin({**made.metadata(at, at), "kind": "main"}, at)
    yield from _played(made, recorder, made.moments)
    if "untitled" not in made.story.marks:
        known = {"summary": made.story.title, "memoryScratchpad": {"version": 1}}
        recorder.records.append({"$set": known})
    yield File(f"{made.stem(at)}.jsonl", lines(recorder.records), made.ended_at)


def _played(made: DemoSession, recorder: Recorder, moments: Sequence[Moment]) -> Iterator[File]:
    """Record the moments, and yield what comes to lie beside the session."""
    for moment in moments:
        started = [acted for acted in _calls(moment) if acted.inner]
        agent_ids = tuple(made.dice.uuid() for _ in started)
        for agent_id, acted in zip(agent_ids, started, strict=True):
            yield _subagent(made, agent_id, acted)
        if isinstance(moment.event, Later):
            yield _ghost(made, moment.at)
            recorder.resume(moment.at)
            continue
        recorder.play(moment, agent_ids)
        if isinstance(moment.event, Save):
            yield _checkpoint(made, moment.event.tag, recorder.active, moment.at)


def _calls(moment: Moment) -> tuple[Acted, ...]:
    return moment.event.calls if isinstance(moment.event, StoryAnswer) else ()


def _subagent(made: DemoSession, agent_id: str, acted: Acted) -> File:
    """Return a subagent's file, in the folder that bears its parent's id."""
    scene = msgspec.structs.replace(made.scene, model=SUBAGENT_MODEL)
    recorder = Recorder(scene, agent_id, "")
    metadata = {**made.metadata(acted.at, acted.at), "sessionId": agent_id, "kind": "subagent"}
    recorder.records.append({**metadata, "directories": [scene.root]})
    _, task = acted.call.delegated()
    recorder.play(Moment(acted.at, acted.at, Ask(task)))
    for moment in acted.inner:
        recorder.play(moment)
    recorder.records.append({"$set": {"summary": report(acted)}})
    path = f"{made.folder}/chats/{made.id}/{agent_id}.jsonl"
    return File(path, lines(recorder.records), acted.ended_at)


def _ghost(made: DemoSession, at: datetime) -> File:
    """Return the file with hardly anything in it that a resume leaves behind."""
    recorder = made.recorder()
    recorder.begin({**made.metadata(at, at), "kind": "main"}, at)
    return File(f"{made.stem(at)}.jsonl", lines(recorder.records), at)


def _checkpoint(made: DemoSession, tag: str, active: Sequence[Json], at: datetime) -> File:
    """Return what `/chat save` writes: the history as the model gets it."""
    roles = {"user": "user", "gemini": "model"}
    history = [
        {"role": roles[message["type"]], "parts": as_parts(message)}
        for message in active
        if message["type"] in roles
    ]
    saved = {"history": history, "authType": "oauth-personal"}
    return File(f"{made.folder}/checkpoint-{quote(tag, safe='')}.json", document(saved), at)


def _as_document(made: DemoSession) -> Iterator[File]:
    """Yield the document; and if the session was resumed by 0.61, the JSON lines of the same name beside it."""
    before, after = _divided(made.moments)
    scene, at, ended_at = made.scene, made.started_at, before[-1].ended_at
    messages = [_message(scene, moment) for moment in before]
    told: Json = {**made.metadata(at, ended_at), "messages": messages}
    if made.story.form == "document":
        told = {**told, "kind": "main"}
    if "untitled" not in made.story.marks:
        told = {**told, "summary": made.story.title}
    yield File(f"{made.stem(at)}.json", document(told), ended_at)
    if after:
        yield from _twin(made, told, after)


def _divided(moments: Sequence[Moment]) -> tuple[Sequence[Moment], Sequence[Moment]]:
    """Return what was said before the first rest, and the rest with what came behind it."""
    rests = [place for place, moment in enumerate(moments) if isinstance(moment.event, Later)]
    place = rests[0] if rests else len(moments)
    return moments[:place], moments[place:]


def _message(scene: Scene, moment: Moment) -> Json:
    return scene.answer(moment, moment.event) if isinstance(moment.event, StoryAnswer) else scene.said(moment)


def _twin(made: DemoSession, told: Json, moments: Sequence[Moment]) -> Iterator[File]:
    """Yield what 0.61 makes of a document that it resumes: all of it in JSON lines, and a ghost."""
    recorder = made.recorder()
    recorder.scene = msgspec.structs.replace(made.scene, form="lines")
    recorder.active = list(told["messages"])
    metadata = {key: value for key, value in told.items() if key != "messages"}
    recorder.records.extend((metadata, *told["messages"]))
    yield from _played(made, recorder, moments)
    yield File(f"{made.stem(made.started_at)}.jsonl", lines(recorder.records), made.ended_at)


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
