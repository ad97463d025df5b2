"""Made-up files of Gemini CLI: sessions, subagents, twins, ghosts, checkpoints and logs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

import msgspec

from retold.demo.gemini import Recorder, Scene, as_parts
from retold.demo.story import Ask, Later, Save, Story
from retold.demo.timeline import (
    INSTRUCTIONS,
    Dice,
    File,
    Json,
    Moment,
    PlayedCall,
    Stage,
    StoryAnswer,
    StorySetting,
    final_report,
    format_document,
    format_lines,
    format_time,
)

SUBAGENT_MODEL = "gemini-3.8-flash"


class DemoSession(msgspec.Struct, frozen=True):
    """A story of Gemini CLI with its times and its id."""

    story: Story
    setting: StorySetting
    dice: Dice
    id: str
    moments: tuple[Moment, ...]

    @property
    def folder(self) -> str:
        """The folder of the project, named by a hash up to 0.28."""
        project = self.story.project
        name = self.setting.project_hash(project) if self.story.form == "hashed" else project
        return f".gemini/tmp/{name}"

    @property
    def started_at(self) -> datetime:
        """The beginning of the first moment."""
        return self.moments[0].at

    @property
    def ended_at(self) -> datetime:
        """The end of the last moment."""
        return self.moments[-1].ended_at

    @property
    def scene(self) -> Scene:
        """The common values of all messages."""
        root = self.setting.root(self.story.project)
        return Scene(root, self.story.model, self.story.form, self.dice)

    def metadata(self, at: datetime, updated_at: datetime) -> Json:
        """Return the metadata of a file that was begun and last updated at some times."""
        return {
            "sessionId": self.id,
            "projectHash": self.setting.project_hash(self.story.project),
            "startTime": format_time(at),
            "lastUpdated": format_time(updated_at),
        }

    def stem(self, at: datetime) -> str:
        """Return the path, without suffix, of a file that was begun at `at`."""
        return f"{self.folder}/chats/session-{at:%Y-%m-%dT%H-%M}-{self.id[:8]}"

    def recorder(self) -> Recorder:
        """Return a new, empty file in JSON lines."""
        return Recorder(self.scene, self.id, str(self.setting.home / self.folder))


def play_session(story: Story, setting: StorySetting) -> DemoSession:
    """Play a story of Gemini CLI."""
    dice = Dice("gemini", story.id)
    stage = Stage(setting.start(story.when), INSTRUCTIONS["gemini"], dice)
    return DemoSession(story, setting, dice, dice.uuid(), tuple(stage.play(story.beats)))


def session_files(session: DemoSession) -> Iterator[File]:
    """Yield every file of a session."""
    if session.story.form == "lines":
        yield from _as_lines(session)
    else:
        yield from _as_document(session)


def _as_lines(session: DemoSession) -> Iterator[File]:
    recorder = session.recorder()
    at = session.started_at
    recorder.begin({**session.metadata(at, at), "kind": "main"}, at)
    yield from _play(session, recorder, session.moments)
    if "untitled" not in session.story.marks:
        known = {"summary": session.story.title, "memoryScratchpad": {"version": 1}}
        recorder.records.append({"$set": known})
    yield File(f"{session.stem(at)}.jsonl", format_lines(recorder.records), session.ended_at)


def _play(session: DemoSession, recorder: Recorder, moments: Sequence[Moment]) -> Iterator[File]:
    """Record moments, and yield the other files that they make."""
    for moment in moments:
        started = [played for played in _calls(moment) if played.inner]
        agent_ids = tuple(session.dice.uuid() for _ in started)
        for agent_id, played in zip(agent_ids, started, strict=True):
            yield _subagent(session, agent_id, played)
        if isinstance(moment.event, Later):
            yield _ghost(session, moment.at)
            recorder.resume(moment.at)
            continue
        recorder.play(moment, agent_ids)
        if isinstance(moment.event, Save):
            yield _checkpoint(session, moment.event.tag, recorder.active, moment.at)


def _calls(moment: Moment) -> tuple[PlayedCall, ...]:
    return moment.event.calls if isinstance(moment.event, StoryAnswer) else ()


def _subagent(session: DemoSession, agent_id: str, played: PlayedCall) -> File:
    """Return the file of a subagent, in the folder named by the id of its parent."""
    scene = msgspec.structs.replace(session.scene, model=SUBAGENT_MODEL)
    recorder = Recorder(scene, agent_id, "")
    metadata = {**session.metadata(played.at, played.at), "sessionId": agent_id, "kind": "subagent"}
    recorder.records.append({**metadata, "directories": [scene.root]})
    _, task = played.call.delegation()
    recorder.play(Moment(played.at, played.at, Ask(task)))
    for moment in played.inner:
        recorder.play(moment)
    recorder.records.append({"$set": {"summary": final_report(played)}})
    path = f"{session.folder}/chats/{session.id}/{agent_id}.jsonl"
    return File(path, format_lines(recorder.records), played.ended_at)


def _ghost(session: DemoSession, at: datetime) -> File:
    """Return the nearly empty file that a resume leaves."""
    recorder = session.recorder()
    recorder.begin({**session.metadata(at, at), "kind": "main"}, at)
    return File(f"{session.stem(at)}.jsonl", format_lines(recorder.records), at)


def _checkpoint(session: DemoSession, tag: str, active: Sequence[Json], at: datetime) -> File:
    """Return the file of `/chat save`: the history as the model gets it."""
    roles = {"user": "user", "gemini": "model"}
    history = [
        {"role": roles[message["type"]], "parts": as_parts(message)}
        for message in active
        if message["type"] in roles
    ]
    saved = {"history": history, "authType": "oauth-personal"}
    return File(f"{session.folder}/checkpoint-{quote(tag, safe='')}.json", format_document(saved), at)


def _as_document(session: DemoSession) -> Iterator[File]:
    """Yield the document and, if 0.61 resumed the session, the JSON lines of the same name."""
    before, after = _split_at_pause(session.moments)
    scene, at, ended_at = session.scene, session.started_at, before[-1].ended_at
    messages = [_message(scene, moment) for moment in before]
    document: Json = {**session.metadata(at, ended_at), "messages": messages}
    if session.story.form == "document":
        document = {**document, "kind": "main"}
    if "untitled" not in session.story.marks:
        document = {**document, "summary": session.story.title}
    yield File(f"{session.stem(at)}.json", format_document(document), ended_at)
    if after:
        yield from _twin(session, document, after)


def _split_at_pause(moments: Sequence[Moment]) -> tuple[Sequence[Moment], Sequence[Moment]]:
    """Return the moments before the first pause, and those from the pause on."""
    pauses = (index for index, moment in enumerate(moments) if isinstance(moment.event, Later))
    first = next(pauses, len(moments))
    return moments[:first], moments[first:]


def _message(scene: Scene, moment: Moment) -> Json:
    return (
        scene.answer(moment, moment.event)
        if isinstance(moment.event, StoryAnswer)
        else scene.message_of(moment)
    )


def _twin(session: DemoSession, document: Json, moments: Sequence[Moment]) -> Iterator[File]:
    """Yield the files that 0.61 makes of a document that it resumes: all of it in JSON lines, and a ghost."""
    recorder = session.recorder()
    recorder.scene = msgspec.structs.replace(session.scene, form="lines")
    recorder.active = list(document["messages"])
    metadata = {key: value for key, value in document.items() if key != "messages"}
    recorder.records.extend((metadata, *document["messages"]))
    yield from _play(session, recorder, moments)
    yield File(f"{session.stem(session.started_at)}.jsonl", format_lines(recorder.records), session.ended_at)


LOST = "lost"
"""Marks a story whose file Gemini CLI has deleted: only the log of prompts is left."""
SETTINGS = {"security": {"auth": {"selectedType": "oauth-personal"}}}


def gemini_files(stories: Sequence[Story], setting: StorySetting) -> Iterator[File]:
    """Yield every file of the home."""
    sessions = [play_session(story, setting) for story in stories]
    for one in sessions:
        if LOST not in one.story.marks:
            yield from session_files(one)
    yield from _logs(sessions)
    yield from _project_files(sessions, setting)


def _logs(sessions: Sequence[DemoSession]) -> Iterator[File]:
    """Yield the log of prompts of each folder."""
    typed: dict[str, list[tuple[datetime, Json]]] = defaultdict(list)
    for one in sessions:
        prompts = [(moment.at, _typed_text(moment.event)) for moment in one.moments]
        for number, (at, text) in enumerate((at, text) for at, text in prompts if text):
            entry = {"sessionId": one.id, "messageId": number, "type": "user", "message": text}
            typed[one.folder].append((at, {**entry, "timestamp": format_time(at)}))
    for folder, entries in typed.items():
        ordered = sorted(entries, key=lambda entry: entry[0])
        yield File(f"{folder}/logs.json", format_document([entry for _, entry in ordered]), ordered[-1][0])


def _typed_text(event: object) -> str | None:
    match event:
        case Ask(text):
            return text
        case Save(tag):
            return f"/chat save {tag}"
    return None


def _project_files(sessions: Sequence[DemoSession], setting: StorySetting) -> Iterator[File]:
    """Yield the settings and the files that name the roots of projects, which folders named by a hash lack."""
    projects = sorted({one.story.project for one in sessions if one.story.form != "hashed"})
    roots = {setting.root(project): project for project in projects}
    at = max(one.ended_at for one in sessions)
    yield File(".gemini/projects.json", format_document({"projects": roots}), at)
    yield File(".gemini/settings.json", format_document(SETTINGS), at)
    for root, project in roots.items():
        yield File(f".gemini/tmp/{project}/.project_root", root, at)
        yield File(f".gemini/history/{project}/.project_root", root, at)
