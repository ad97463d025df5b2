"""All of Claude Code's home: a transcript for each story, and what lies beside it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from retold.demo.acts import Acted, Moment, Stage
from retold.demo.cast import INSTRUCTIONS, File, StorySetting
from retold.demo.claude.transcript import DemoTranscript
from retold.demo.dice import Dice
from retold.demo.story import Ask, Story
from retold.demo.wording import Json, document, lines

SUBAGENT_MODEL = "claude-haiku-4-5-20251001"


def claude_files(stories: Sequence[Story], setting: StorySetting) -> Iterator[File]:
    """Yield every file of the home; a story that another was forked from stands before it."""
    written: dict[str, DemoTranscript] = {}
    for story in stories:
        dice = Dice("claude", story.id)
        transcript = DemoTranscript(dice.uuid(), setting.root(story.project), story.model, dice)
        written[story.id] = transcript
        base = _copied(transcript, written, story)
        stage = Stage(setting.start(story.when), INSTRUCTIONS["claude"] + base, dice)
        for moment in stage.play(story.beats):
            transcript.play(moment)
        yield from _files(story, transcript, setting, stage.at)


def _copied(transcript: DemoTranscript, written: Mapping[str, DemoTranscript], story: Story) -> int:
    """Begin a fork with the lines of its parent, as of this session; return how many tokens they are."""
    if story.forked_from is None:
        return 0
    parent = written[story.forked_from]
    said = [record for record in parent.records if "uuid" in record]
    transcript.records.extend({**record, "sessionId": transcript.session_id} for record in said)
    transcript.leaf = parent.leaf
    return len(lines(said)) // 12


def _files(story: Story, transcript: DemoTranscript, setting: StorySetting, at: datetime) -> Iterator[File]:
    folder = f".claude/projects/{setting.claude_name(story.project)}"
    records = [*transcript.records, *_names(story, transcript.session_id)]
    yield File(f"{folder}/{transcript.session_id}.jsonl", lines(records), at)
    for agent_id, acted in transcript.started:
        path = f"{folder}/{transcript.session_id}/subagents/agent-{agent_id}"
        kind, task = acted.call.delegated()
        meta = {"agentType": kind, "description": " ".join(task.split()[:5])}
        yield File(f"{path}.meta.json", document(meta), acted.at)
        yield File(f"{path}.jsonl", lines(_subagent(transcript, agent_id, acted)), acted.ended_at)


def _names(story: Story, session_id: str) -> Iterator[Json]:
    """Yield what the session is called, by the person or by the model, and what was said last."""
    if "named" in story.marks:
        yield {"type": "custom-title", "customTitle": story.title, "sessionId": session_id}
    elif "untitled" not in story.marks:
        yield {"type": "ai-title", "aiTitle": story.title, "sessionId": session_id}
    yield {"type": "last-prompt", "lastPrompt": story.prompts()[-1], "sessionId": session_id}


def _subagent(parent: DemoTranscript, agent_id: str, acted: Acted) -> list[Json]:
    transcript = DemoTranscript(parent.session_id, parent.root, SUBAGENT_MODEL, parent.dice, agent_id)
    _, task = acted.call.delegated()
    for moment in (Moment(acted.at, acted.at, Ask(task)), *acted.inner):
        transcript.play(moment)
    return transcript.records
