"""A session in JSON lines, written as it happens: what 0.61.0 appends, line by line."""

from datetime import datetime

import msgspec

from retold.demo.acts import Moment, StoryAnswer
from retold.demo.gemini.messages import (
    ACCEPTED,
    Scene,
    as_parts,
    environment,
    responses,
)
from retold.demo.story import Ask, Compact, Notice, Rewind, Save, Shell
from retold.demo.wording import Json, stamp


class Recorder(msgspec.Struct):
    """The lines so far, and the messages that the model would be sent."""

    scene: Scene
    session_id: str
    temporary: str
    records: list[Json] = []
    active: list[Json] = []

    def begin(self, metadata: Json, at: datetime) -> None:
        """Open the file: a line about the session, and one about the place."""
        self.records.append(metadata)
        self._replace([environment(self.scene.root, self.temporary, at)], at)

    def play(self, moment: Moment, agent_ids: tuple[str, ...] = ()) -> None:
        """Take down what happens."""
        match moment.event:
            case Ask() | Shell() | Notice():
                self._put(self.scene.said(moment), moment.at)
            case StoryAnswer() as answer:
                self._answer(moment, answer, agent_ids)
            case Rewind():
                self._rewind()
            case Compact(summary):
                self._compact(summary, moment.at)
            case Save(tag):
                told = f"Conversation checkpoint saved with tag: {tag}."
                self._put(self.scene.message(moment.at, "info", told), moment.at)

    def resume(self, at: datetime) -> None:
        """Write the whole history down once more, as the model will get it."""
        kept = [message for message in self.active if message["type"] in {"user", "gemini"}]
        if not any("<session_context>" in str(message["content"]) for message in kept[:1]):
            kept.insert(0, environment(self.scene.root, self.temporary, at))
        again: list[Json] = []
        for message in kept:
            again.append(_resumed(message))
            if message.get("toolCalls"):
                again.append(
                    {
                        "id": f"{message['id']}_response",
                        "timestamp": stamp(at),
                        "type": "user",
                        "content": responses(message),
                    }
                )
        self.records.append({"$set": {"sessionId": self.session_id}})
        self._replace(again, at)

    def _answer(self, moment: Moment, answer: StoryAnswer, agent_ids: tuple[str, ...]) -> None:
        whole = self.scene.answer(moment, answer, agent_ids)
        if not answer.calls:
            self._put(whole, moment.ended_at)
            return
        first = {key: value for key, value in whole.items() if key != "toolCalls"}
        self._put(first, answer.calls[0].at)
        self.records.append(whole)
        self.active[-1] = whole
        self._put(self.scene.results(whole, moment.ended_at), moment.ended_at)
        if any(call["status"] == "cancelled" for call in whole["toolCalls"]):
            self._put(self.scene.message(moment.ended_at, "info", "Request cancelled."), moment.ended_at)
            self._record_again(moment.ended_at)

    def _record_again(self, at: datetime) -> None:
        """Write the whole history down under new ids, as a cancelled turn makes the CLI do."""
        kept = [message for message in self.active if message["type"] in {"user", "gemini"}]
        copies = [self.scene.message(at, message["type"], as_parts(message)) for message in kept]
        first, second, *others = copies  # the place and the first prompt become one message
        copies = [{**first, "content": [*first["content"], *second["content"]]}, *others]
        self.records.extend(copies)
        self._replace(copies, at)

    def _rewind(self) -> None:
        prompts = [place for place, message in enumerate(self.active) if _is_prompt(message)]
        self.records.append({"$rewindTo": self.active[prompts[-1]]["id"]})
        del self.active[prompts[-1] :]

    def _compact(self, summary: str, at: datetime) -> None:
        snapshot = (
            f"<state_snapshot>\n    <overall_goal>\n        {summary}\n    </overall_goal>\n</state_snapshot>"
        )
        kept = [
            self.active[0],
            self.scene.message(at, "user", [{"text": snapshot}]),
            self.scene.message(at, "gemini", [{"text": ACCEPTED}]),
        ]
        self.records.append({"$set": {"sessionId": self.session_id}})
        self._replace(kept, at)
        self._put(self.scene.message(at, "info", ""), at)

    def _put(self, message: Json, at: datetime) -> None:
        self.records.extend((message, {"$set": {"lastUpdated": stamp(at)}}))
        self.active.append(message)

    def _replace(self, messages: list[Json], at: datetime) -> None:
        self.records.append({"$set": {"messages": messages, "lastUpdated": stamp(at)}})
        self.active = list(messages)


def _is_prompt(message: Json) -> bool:
    return message["type"] == "user" and "text" in message["content"][0]


def _resumed(message: Json) -> Json:
    """Return a message as a resume repeats it: in parts, and each call with the results of all."""
    if message["type"] == "user":
        return message
    calls = [{**call, "result": responses(message)} for call in message.get("toolCalls", ())]
    return {**message, "content": as_parts(message), **({"toolCalls": calls} if calls else {})}
