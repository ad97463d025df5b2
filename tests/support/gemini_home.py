"""Builds small Gemini CLI homes with sessions in the formats of several versions."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = "/home/ann/dev/almanac"
DAY = "2026-03-01"


def sha(root: str) -> str:
    return hashlib.sha256(root.encode()).hexdigest()


def session_id(number: int) -> str:
    return f"{number:08x}-3b2d-4f68-9a01-5d2e8c4b6f13"


def user(message_id: str, minute: int, text: str) -> Json:
    return {"id": message_id, "timestamp": at(minute), "type": "user", "content": text}


def gemini(message_id: str, minute: int, text: str, calls: Sequence[Json] = ()) -> Json:
    tokens = {"input": 100, "output": 10, "cached": 0, "thoughts": 5, "tool": 0, "total": 115}
    message = {
        "id": message_id,
        "timestamp": at(minute),
        "type": "gemini",
        "content": text,
        "model": "gemini-2.5-pro",
    }
    return {**message, "tokens": tokens, "toolCalls": list(calls)}


def call(name: str, arguments: Json, minute: int, **more: Any) -> Json:
    result = [{"functionResponse": {"id": f"{name}-1", "name": name, "response": {"output": "done"}}}]
    told = {"id": f"{name}-1", "name": name, "args": arguments, "result": result, "status": "success"}
    return {**told, "timestamp": at(minute, 30), **more}


def at(minute: int, second: int = 0) -> str:
    return f"{DAY}T09:{minute:02}:{second:02}.000Z"


def metadata(number: int, minute: int, root: str = ROOT, **more: Any) -> Json:
    times = {"startTime": at(minute), "lastUpdated": at(minute + 5)}
    return {"sessionId": session_id(number), "projectHash": sha(root), **times, **more}


class GeminiHome:
    """Writes sessions into a `.gemini` folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gemini = folder / ".gemini"
        (self.gemini / "tmp").mkdir(parents=True, exist_ok=True)

    def write(self, path: str, text: str) -> Path:
        file = self.gemini / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def json(self, project: str, number: int, minute: int, messages: Sequence[Json], **more: Any) -> Path:
        document = {**metadata(number, minute, **more), "messages": list(messages)}
        return self.write(f"{self.name(project, number, minute)}.json", json.dumps(document, indent=2))

    def lines(self, project: str, number: int, minute: int, records: Sequence[Json], **more: Any) -> Path:
        rows = [metadata(number, minute, **more), *records]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        return self.write(f"{self.name(project, number, minute)}.jsonl", text)

    def name(self, project: str, number: int, minute: int) -> str:
        return f"tmp/{project}/chats/session-{DAY}T09-{minute:02}-{session_id(number)[:8]}"

    def mark(self, project: str, root: str) -> None:
        self.write(f"tmp/{project}/.project_root", root)

    def register(self, projects: dict[str, str]) -> None:
        self.write("projects.json", json.dumps({"projects": projects}))

    def logs(self, project: str, prompts: Sequence[tuple[int, str]]) -> None:
        entries = [
            {
                "sessionId": session_id(number),
                "messageId": place,
                "type": "user",
                "message": text,
                "timestamp": at(place),
            }
            for place, (number, text) in enumerate(prompts)
        ]
        self.write(f"tmp/{project}/logs.json", json.dumps(entries))
