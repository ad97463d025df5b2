"""A rollout while it is written: items of the model's history, and events beside them."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from retold.demo.acts import Acted, Moment, StoryAnswer, StoryUsage
from retold.demo.codex.calls import Told, told_calls
from retold.demo.dice import Dice
from retold.demo.story import Ask, Compact, Notice, Rewind, Shell
from retold.demo.wording import Json, stamp

WINDOW = 258_400
SUMMED_UP = (
    "Another language model started to solve this problem and produced a summary of its thinking process. "
    "Use this to build on the work that has already been done.\n"
)
_LIMITS = {"limit_id": "codex", "limit_name": None, "primary": None, "secondary": None, "plan_type": "plus"}


class DemoRollout(msgspec.Struct):
    """The lines of a thread so far, and the running total of its tokens."""

    thread_id: str
    root: str
    model: str
    dice: Dice
    records: list[Json] = []
    started: list[tuple[str, Acted]] = []
    total: StoryUsage = StoryUsage(0, 0, 0, 0)
    last: StoryUsage = StoryUsage(0, 0, 0, 0)
    turn_id: str = ""
    turn_at: datetime | None = None
    last_said: str = ""

    def play(self, moment: Moment) -> None:
        """Take down what happens."""
        match moment.event:
            case Ask(text):
                self._prompt(text, moment.at)
            case StoryAnswer() as answer:
                self._answer(answer, moment)
            case Shell(command, output):
                result = f"Exit code: 0\nDuration: 0.0412 seconds\nOutput:\n{output}"
                inner = f"<command>\n{command}\n</command>\n<result>\n{result}\n</result>"
                self.message("user", f"<user_shell_command>\n{inner}\n</user_shell_command>", moment.at)
            case Notice(kind, text):
                name = "stream_error" if kind == "error" else "warning"
                self.event(moment.at, type=name, message=text)
            case Rewind():
                self.end_turn(moment.at)
                self.event(moment.at, type="thread_rolled_back", num_turns=1)
            case Compact(summary):
                self._compact(summary, moment.at)

    def put(self, kind: str, payload: Json, at: datetime) -> None:
        """Append a line."""
        self.records.append({"timestamp": stamp(at), "type": kind, "payload": payload})

    def event(self, at: datetime, **payload: object) -> None:
        """Append a line that tells the screen something."""
        self.put("event_msg", payload, at)

    def item(self, payload: Json, at: datetime) -> None:
        """Append a piece of the model's history."""
        passed = {"turn_id": self.turn_id} if self.turn_id else {}
        self.put("response_item", {**payload, "internal_chat_message_metadata_passthrough": passed}, at)

    def message(self, role: str, text: str, at: datetime) -> None:
        """Append what was said."""
        kind = "output_text" if role == "assistant" else "input_text"
        said = {"type": "message", "id": f"msg_{self.dice.uuid7(at)}", "role": role}
        self.item({**said, "content": [{"type": kind, "text": text}]}, at)

    def begin_turn(self, at: datetime) -> None:
        """Begin a turn, after the one before."""
        self.end_turn(at)
        self.turn_id, self.turn_at, self.last_said = self.dice.uuid7(at), at, ""
        self.event(
            at,
            type="task_started",
            turn_id=self.turn_id,
            started_at=int(at.timestamp()),
            model_context_window=WINDOW,
            collaboration_mode_kind="default",
        )

    def end_turn(self, at: datetime) -> None:
        """End the turn, if one is running: aborted, if nothing came of it."""
        if self.turn_at is None:
            return
        began = int(self.turn_at.timestamp())
        took = {"started_at": began, "completed_at": max(began, int(at.timestamp()) - 20)}
        if self.last_said:
            self.event(
                at, type="task_complete", turn_id=self.turn_id, last_agent_message=self.last_said, **took
            )
        else:
            self.event(at, type="turn_aborted", turn_id=self.turn_id, reason="interrupted", **took)
        self.turn_at = None

    def context(self, at: datetime) -> None:
        """Append the settings of the turn."""
        self.put(
            "turn_context",
            {
                "turn_id": self.turn_id,
                "cwd": self.root,
                "workspace_roots": [self.root],
                "current_date": f"{at:%Y-%m-%d}",
                "timezone": "Etc/UTC",
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "workspace-write", "network_access": False},
                "model": self.model,
                "personality": "pragmatic",
                "effort": "medium",
                "summary": "auto",
            },
            at,
        )

    def _prompt(self, text: str, at: datetime) -> None:
        if self.turn_at is None or self.last_said:
            self.begin_turn(at)
        self.context(at)
        self.message("user", text, at)
        self.event(at, type="user_message", message=text, images=[], local_images=[], text_elements=[])

    def _answer(self, answer: StoryAnswer, moment: Moment) -> None:
        at = moment.at
        for thought in answer.thoughts:
            text = f"**{thought.subject}**\n\n{thought.text}"
            self.event(at, type="agent_reasoning", text=text)
            summary = {"type": "reasoning", "id": f"rs_{self.dice.hex(40)}"}
            sealed = {"content": None, "encrypted_content": f"gAAAA{self.dice.name(96)}"}
            self.item({**summary, "summary": [{"type": "summary_text", "text": text}], **sealed}, at)
        if answer.text:
            self.event(at, type="agent_message", message=answer.text, phase=None, memory_citation=None)
            self.message("assistant", answer.text, at)
            self.last_said = answer.text
        for acted in answer.calls:
            for told in self._told(acted):
                self._call(told, acted)
        self._count(answer.spent, moment.ended_at)

    def _told(self, acted: Acted) -> Iterator[Told]:
        thread_id = self.dice.uuid7(acted.at)
        if acted.inner:
            self.started.append((thread_id, acted))
        return told_calls(acted, self.root, thread_id, self.dice)

    def _call(self, told: Told, acted: Acted) -> None:
        self.item(told.asked, acted.at)
        if told.ended is not None:
            self.event(acted.ended_at, **told.ended)
        if told.answered is not None:
            self.item(told.answered, acted.ended_at)

    def _count(self, spent: StoryUsage, at: datetime) -> None:
        before, self.last = self.total, spent
        self.total = StoryUsage(
            before.input + spent.input,
            before.cached + spent.cached,
            before.output + spent.output,
            before.reasoning + spent.reasoning,
        )
        info = {"total_token_usage": _figures(self.total), "last_token_usage": _figures(spent)}
        counted = {**info, "model_context_window": WINDOW}
        self.event(at, type="token_count", info=counted, rate_limits=_LIMITS)

    def _compact(self, summary: str, at: datetime) -> None:
        asked = [
            record["payload"]
            for record in self.records
            if record["payload"].get("role") == "user" and "<" not in str(record["payload"]["content"])[:30]
        ]
        self.begin_turn(at)
        self.message("assistant", summary, at)
        self._count(
            StoryUsage(
                self.last.input + self.last.output, self.last.input // 128 * 128, len(summary) // 4, 0
            ),
            at,
        )
        told = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": SUMMED_UP + summary}],
        }
        self.put("compacted", {"message": SUMMED_UP + summary, "replacement_history": [*asked, told]}, at)
        self.event(at, type="context_compacted")
        self.last_said = summary
        self.end_turn(at)


def _figures(spent: StoryUsage) -> Json:
    """Return tokens as Codex counts them: what was reasoned is in the output."""
    output = spent.output + spent.reasoning
    return {
        "input_tokens": spent.input,
        "cached_input_tokens": spent.cached,
        "cache_write_input_tokens": 0,
        "output_tokens": output,
        "reasoning_output_tokens": spent.reasoning,
        "total_tokens": spent.input + output,
    }
