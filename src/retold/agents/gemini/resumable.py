"""A conversation as records that Gemini CLI resumes well: every call once, and one response for each.

What the CLI wrote itself it resumes badly since 0.45: it holds each tool's result twice and sends both. Here calls stand
as parts of the answer and their responses in the message behind it, which stays well-formed however often it is resumed;
for the versions that write one document, results stand in the call. Evidence: `docs/formats/gemini.md`, section 15.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retold.agents.gemini.copies import CONTEXT_ENDS, CONTEXT_OPENS
from retold.agents.gemini.raw import (
    ENVIRONMENT_ID,
    RESPONSE_SUFFIX,
    RESULTS_SUFFIX,
    SAID,
    SNAPSHOT,
    Record,
    plain_text,
    text_parts,
)
from retold.agents.gemini.state import Key, State
from retold.agents.gemini.timelines import fates
from retold.agents.gemini.versions import richest
from retold.model.session import View

NO_RESULT = "No result of this call was recorded."
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
_ANSWER = ("id", "timestamp", "type", "content", "thoughts", "tokens", "model")
_PROMPT = ("id", "timestamp", "type", "content", "displayContent")


def spoken(state: State, view: View) -> list[Record]:
    """Return the messages of a view at their richest, in order of first appearance, without what the CLI adds itself."""
    live = fates(state)
    found: list[Record] = []
    for key, versions in state.ever.items():
        if key in state.copies or (view == "active" and live.get(key) != "live"):
            continue
        record = richest(versions)[0] if type(versions[0][0]) is dict else None
        if record is not None and record.get("type") in SAID and not _is_setting(key, record):
            named = record if type(record.get("id")) is str else record | {"id": f"restored-{len(found)}"}
            found.append(_without_setting(named))
    return found if view == "active" else _without_snapshots(found)


def responses(state: State) -> dict[str, Record]:
    """Return the responses that stand in messages of their own, the first of each call."""
    found: dict[str, Record] = {}
    for versions in state.ever.values():
        for record, _ in versions:
            if type(record) is not dict or record.get("type") != "user":
                continue
            for part in text_parts(record.get("content")):
                response = part.get("functionResponse") if type(part) is dict else None
                if type(response) is dict and type(response.get("id")) is str:
                    found.setdefault(response["id"], part)
    return found


def as_lines(messages: Sequence[Record], given: Mapping[str, Record]) -> list[Record]:
    """Return messages for JSON lines: calls among the parts of an answer, their responses in a message of their own."""
    told: list[Record] = []
    for record, written, calls in _written_messages(messages):
        told.append(written)
        if calls:
            written["content"] = [*_words(record), *({"functionCall": call} for call in calls)]
            parts = [part for call in calls for part in _result(call, record, given)]
            behind = {
                "id": f"{record['id']}{RESULTS_SUFFIX}",
                "timestamp": record.get("timestamp"),
                "type": "user",
            }
            told.append(behind | {"content": parts})
    return told


def as_document(messages: Sequence[Record], given: Mapping[str, Record]) -> list[Record]:
    """Return messages for one JSON document: results in their calls, as versions up to 0.38 read them."""
    told: list[Record] = []
    for record, written, calls in _written_messages(messages):
        told.append(written)
        if calls:
            written["content"] = plain_text(record.get("content"))
            written["toolCalls"] = [
                _known(record, call) | call | {"result": list(_result(call, record, given))} for call in calls
            ]
    return told


def _written_messages(messages: Sequence[Record]) -> Iterator[tuple[Record, Record, list[Record]]]:
    """Yield each message, what is written of it, and its calls; what only holds responses is told with the calls."""
    for record in messages:
        if record["type"] == "gemini":
            yield record, _chosen(record, _ANSWER), list(_calls(record))
        elif not _is_response(record):
            yield record, _chosen(record, _PROMPT), []


def is_wellformed(messages: Sequence[Any]) -> bool:
    """Tell whether what the CLI makes of these when it resumes has exactly one response for each call, right behind it."""
    asked: list[str] = []
    for turn in _turns(messages):
        calls, responses = _names(turn, "functionCall"), _names(turn, "functionResponse")
        if sorted(responses) != sorted(asked):
            return False
        asked = calls
    return not asked


def _turns(messages: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the parts of each turn, as `convertSessionToClientHistory` of 0.61.0 makes them."""
    for record in messages:
        if type(record) is not dict or record.get("type") not in SAID:
            continue
        parts = text_parts(record.get("content"))
        if record["type"] == "user":
            if not plain_text(parts).strip().startswith(("/", "?", "<session_context>", "<hook_context>")):
                yield parts
            continue
        calls = _listed(record.get("toolCalls"))
        if not _names(parts, "functionCall"):
            parts = [*parts, *({"functionCall": call} for call in calls)]
        if parts:
            yield parts
        results = [part for call in calls for part in text_parts(call.get("result")) if type(part) is dict]
        if results:
            yield results


def _names(parts: Sequence[Any], kind: str) -> list[str]:
    holders = (part.get(kind) for part in parts if type(part) is dict)
    return [str(holder.get("id")) for holder in holders if type(holder) is dict]


def _is_setting(key: Key, record: Record) -> bool:
    """Tell whether the CLI wrote this to itself: it does so again."""
    if key == ENVIRONMENT_ID or str(key).endswith((RESPONSE_SUFFIX, RESULTS_SUFFIX)):
        return True
    words = plain_text(record.get("content")).strip()
    return record["type"] == "user" and words.startswith(CONTEXT_OPENS) and words.endswith(CONTEXT_ENDS)


def _without_setting(record: Record) -> Record:
    """Return a prompt without the setting that a cancel has merged into it; the CLI would drop both."""
    if record["type"] != "user" or not plain_text(record.get("content")).lstrip().startswith(CONTEXT_OPENS):
        return record
    kept = [
        part
        for part in text_parts(record["content"])
        if not plain_text([part]).lstrip().startswith(CONTEXT_OPENS)
    ]
    return record | {"content": kept}


def _without_snapshots(messages: Sequence[Record]) -> list[Record]:
    """Return everything that was said, without the summaries that `/compress` put in its place."""
    kept: list[Record] = []
    is_behind_snapshot = False
    for record in messages:
        words = plain_text(record.get("content")).strip()
        is_snapshot = words.startswith(SNAPSHOT)
        if not is_snapshot and not (is_behind_snapshot and words == _ACKNOWLEDGED):
            kept.append(record)
        is_behind_snapshot = is_snapshot
    return kept


def _is_response(record: Record) -> bool:
    """Tell whether a user's message holds nothing but responses of tools."""
    parts = text_parts(record.get("content"))
    return bool(parts) and all(
        type(part) is dict and type(part.get("functionResponse")) is dict for part in parts
    )


def _calls(record: Record) -> Iterator[Record]:
    """Yield id, name and arguments of the calls of an answer."""
    recorded = _listed(record.get("toolCalls"))
    among = [part["functionCall"] for part in text_parts(record.get("content")) if _is_call(part)]
    for number, call in enumerate(recorded or among):
        name, arguments = call.get("name"), call.get("args")
        known = call.get("id")
        yield {
            "id": known if type(known) is str and known else f"{record['id']}-{number}",
            "name": name if type(name) is str else "unknown",
            "args": arguments if type(arguments) is dict else {},
        }


def _known(record: Record, call: Record) -> Record:
    """Return what was recorded of a call."""
    return next((known for known in _listed(record.get("toolCalls")) if known.get("id") == call["id"]), {})


def _result(call: Record, record: Record, given: Mapping[str, Record]) -> Iterator[Record]:
    """Yield the one response of a call, and what came with it that is none."""
    result = _known(record, call).get("result")
    parts = [part for part in text_parts(result) if type(part) is dict] if type(result) is not str else []
    own = [part for part in parts if type(part.get("functionResponse")) is dict]
    response = next((part for part in own if part["functionResponse"].get("id") == call["id"]), None)
    if response is None and len(own) == 1 and own[0]["functionResponse"].get("id") is None:
        response = own[0]
    if response is None and type(result) is str:
        response = {"functionResponse": {"response": {"output": result}}}
    response = response or given.get(call["id"]) or {"functionResponse": {"response": {"error": NO_RESULT}}}
    named = {"id": call["id"], "name": call["name"]}
    yield response | {"functionResponse": {**response["functionResponse"], **named}}
    yield from (part for part in parts if "functionResponse" not in part)


def _words(record: Record) -> Iterator[Record]:
    for part in text_parts(record.get("content")):
        if type(part) is str and part:
            yield {"text": part}
        elif type(part) is dict and not _is_call(part) and part.get("thought") is not True:
            yield part


def _is_call(part: Any) -> bool:
    return type(part) is dict and type(part.get("functionCall")) is dict


def _listed(value: Any) -> list[Record]:
    return [item for item in value if type(item) is dict] if type(value) is list else []


def _chosen(record: Record, keys: Sequence[str]) -> Record:
    return {key: record[key] for key in keys if record.get(key) is not None}
