"""Moments as Gemini CLI's messages, in JSON lines and in documents alike."""

from datetime import datetime

import msgspec

from retold.demo.acts import Moment, StoryAnswer
from retold.demo.dice import Dice
from retold.demo.gemini.calls import tool_call
from retold.demo.story import Ask, Form, Notice, Shell
from retold.demo.wording import Json, stamp

ENVIRONMENT_ID = "d04923d38bb0f6017037e74183378ef4"
ACCEPTED = "Got it. Thanks for the additional context!"


class Scene(msgspec.Struct, frozen=True):
    """What the messages of one session have in common."""

    root: str
    model: str
    form: Form
    dice: Dice

    def message(self, at: datetime, kind: str, content: object) -> Json:
        """Return a message with an id of its own."""
        return {"id": self.dice.uuid(), "timestamp": stamp(at), "type": kind, "content": content}

    def said(self, moment: Moment) -> Json:
        """Return what a person or the program said."""
        match moment.event:
            case Ask(text):
                return self.message(moment.at, "user", [{"text": text}])
            case Shell(command, output):
                text = (
                    f"I ran the following shell command:\n```sh\n{command}\n```\n\n"
                    f"This produced the following result:\n```\n{output}\n```"
                )
                return self.message(moment.at, "user", [{"text": text}])
            case Notice(kind, text):
                return self.message(moment.at, kind, text)
        raise ValueError(moment.event)

    def answer(self, moment: Moment, answer: StoryAnswer, agent_ids: tuple[str, ...] = ()) -> Json:
        """Return a response, with its calls if it has any."""
        at = moment.at if not answer.calls else answer.calls[0].at
        spent = answer.spent
        tokens = {
            "input": spent.input,
            "output": spent.output,
            "cached": spent.cached,
            "thoughts": spent.reasoning,
            "tool": 0,
            "total": spent.total,
        }
        thoughts = [
            {"subject": thought.subject, "description": thought.text, "timestamp": stamp(moment.at)}
            for thought in answer.thoughts
        ]
        said = self.message(at, "gemini", answer.text)
        return {
            **said,
            "thoughts": thoughts,
            "tokens": tokens,
            "model": self.model,
            **self._calls(answer, agent_ids),
        }

    def _calls(self, answer: StoryAnswer, agent_ids: tuple[str, ...]) -> Json:
        agents = iter(agent_ids)
        calls = []
        for place, acted in enumerate(answer.calls):
            agent_id = next(agents, None) if acted.inner else None
            call = tool_call(acted, "", self.root, self.form, agent_id)
            calls.append(_with_id(call, self._call_id(call["name"], acted.at, place)))
        return {"toolCalls": calls} if calls else {}

    def _call_id(self, name: str, at: datetime, place: int) -> str:
        milliseconds = int(at.timestamp() * 1000)
        if self.form == "hashed":
            return f"{name}-{milliseconds}-{self.dice.hex(13)}"
        known = f"{name}_{milliseconds}_{place}"
        return f"{name}__{known}" if self.form == "lines" else known

    def results(self, answer: Json, at: datetime) -> Json:
        """Return the message that brings the results of an answer's calls to the model."""
        return self.message(at, "user", responses(answer))


def responses(answer: Json) -> list[Json]:
    """Return what came back from all calls of an answer."""
    return [part for call in answer.get("toolCalls", ()) for part in call["result"]]


def _with_id(call: Json, call_id: str) -> Json:
    (part,) = call["result"]
    response = {"functionResponse": {**part["functionResponse"], "id": call_id}}
    return {**call, "id": call_id, "result": [response]}


def as_parts(message: Json) -> list[Json]:
    """Return what a message says as the model gets it."""
    content = message["content"]
    said: list[Json] = content if isinstance(content, list) else [{"text": content}] if content else []
    thoughts = [
        {"text": f"**{thought['subject']}** {thought['description']}", "thought": True}
        for thought in message.get("thoughts", ())
    ]
    calls = [
        {"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}}
        for call in message.get("toolCalls", ())
    ]
    return [*thoughts, *said, *calls]


def environment(root: str, temporary: str, at: datetime) -> Json:
    """Return what Gemini CLI tells its model about the place, before anybody speaks."""
    text = (
        "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
        f"Today's date is {at:%A, %B} {at.day}, {at.year} (formatted according to the user's locale).\n"
        f"My operating system is: linux\nThe project's temporary directory is: {temporary}\n"
        f"- **Workspace Directories:**\n  - {root}\n</session_context>"
    )
    return {"id": ENVIRONMENT_ID, "timestamp": stamp(at), "type": "user", "content": [{"text": text}]}
