"""Reads the requests that the real CLI sent to the fake API."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Part = dict[str, Any]


def last_conversation(log: Path) -> list[Part]:
    """Return the turns of the request with the longest conversation in a run's log."""
    requests = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(log.glob("[0-9]*.json"))]
    bodies = [as_object(request["body"]) for request in requests if "enerateContent" in request["url"]]
    told: list[Part] = max(bodies, key=lambda body: len(body.get("contents", [])))["contents"]
    return told


def as_object(body: Any) -> Part:
    told: Part = json.loads(body) if isinstance(body, str) else body
    return told


def parts(turns: list[Part], kind: str) -> Iterator[Any]:
    """Yield every part of a kind (text, functionCall or functionResponse) in order, without thoughts."""
    for turn in turns:
        yield from (part[kind] for part in turn["parts"] if kind in part and not part.get("thought"))


def unpaired_calls(turns: list[Part]) -> list[str]:
    """Return a message for every turn that does not answer the calls before it once each, as the API demands."""
    told: list[str] = []
    asked: list[str] = []
    for number, turn in enumerate(turns):
        given = sorted(str(response["id"]) for response in parts([turn], "functionResponse"))
        if given != sorted(asked):
            told.append(f"turn {number}: {asked} were asked for, {given} were given")
        asked = [str(call["id"]) for call in parts([turn], "functionCall")]
    return told
