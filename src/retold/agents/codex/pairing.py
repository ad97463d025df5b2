"""Calls that wait for their results, and results and events that are brought to their calls.

Evidence: `docs/formats/codex.md`, section 7.
"""

from datetime import datetime
from typing import Any

import msgspec

from retold.agents.codex.calls import DONE, STATUSES, as_end, call, call_in, enriched, message
from retold.agents.codex.raw import Record, rest, text_or_none
from retold.agents.codex.results import Result, as_json, as_object, result
from retold.agents.codex.state import Asked, End, State
from retold.agents.codex.tools import ASKS, SCRIPTS, full_name
from retold.model.serialization import shown_value
from retold.model.session import Attachment, Context, Message
from retold.reading.diagnostics import elapsed_ms

_MOST = 200
"""Results and events that one call may have. Further ones stand for themselves: to join them all would take quadratic time."""
_KNOWN = frozenset(
    ("type", "id", "call_id", "name", "namespace", "arguments", "input", "action", "status", "output", "tools",
     "revised_prompt", "result")
)  # fmt: skip


def ask(state: State, payload: Record, at: datetime | None) -> None:
    """Take a call down; its message is made when the result comes, and stands here."""
    name = payload.get("name")
    if type(name) is not str:
        native = payload["type"].removesuffix("_call")
        name = native if native not in ("function", "custom_tool") else "unknown"
    name = full_name(name, payload.get("namespace"))
    arguments, odd = _arguments(payload, state)
    call_id = payload.get("call_id") or payload.get("id")
    if type(call_id) is not str:
        state.unnamed.append(len(state.entries))
        call_id = state.notes.call_id(name)
    native_status, item_id = text_or_none(payload.get("status")), text_or_none(payload.get("id"))
    extra, response = rest(payload, _KNOWN), state.meter.response
    wait_for(
        state, Asked(call_id, name, arguments, native_status, odd, item_id, at, state.model, response, extra)
    )


def wait_for(state: State, asked: Asked) -> None:
    """Keep the place of a call until its result comes."""
    index = state.reserve()
    state.meter.open.append(index)
    state.asked[asked.call_id] = index
    state.waiting[index] = asked
    if asked.name in SCRIPTS:
        state.scripts.append(index)
    if state.inner:
        _take_over(state, asked.call_id, index)


def ask_and_end(state: State, payload: Record, at: datetime | None) -> None:
    """Take a call down that has no output of its own: a search in the web, an image."""
    ask(state, payload, at)
    index = len(state.entries) - 1
    if "action" in payload:
        name = search_name(payload["action"])
        state.asked[name] = index
        _take_over(state, name, index)
    status = STATUSES.get(str(payload.get("status")), "unknown")
    made = payload.get("result")
    attached = (Attachment(data=made),) if type(made) is str and made else ()
    state.put_back(index, message(state.waiting.pop(index), Result(None, status, attachments=attached), at))
    if _is_unnamed(state, index):
        state.unnamed.pop()


def search_name(action: Any) -> str:
    """Return what tells a search apart: up to 0.14x only its event has an id."""
    return f"web_search {as_json(action)}"


def answer(state: State, payload: Record, at: datetime | None) -> None:
    """Bring a result to its call."""
    item_id, extra = text_or_none(payload.get("id")), rest(payload, _KNOWN)
    put_answer(state, payload.get("call_id"), result(payload.get("output")), item_id, extra, at)


def answer_search(state: State, payload: Record, at: datetime | None) -> None:
    """Bring the tools that a search found to the call that looked for them."""
    answer(state, {**payload, "output": as_json(payload.get("tools"))}, at)


def put_answer(  # noqa: PLR0913 - one argument a field: most lines of a rollout come through here
    state: State, call_id: Any, found: Result, item_id: str | None, extra: Record | None, at: datetime | None
) -> None:
    """Put a result into its call, and leave a mention of it where it stood."""
    index = state.asked.get(call_id) if type(call_id) is str else _oldest_unnamed(state)
    asked = None if index is None else state.waiting.pop(index, None)
    words = None
    if index is None:
        state.notes.add("orphan-tool-result", shown_value(call_id))
        is_error = found.status == "error"
        part = Context("tool_result", found.text, text_or_none(call_id), is_error, found.attachments)
    elif asked is None:
        part = _answer_again(state, index, text_or_none(call_id), found)
    else:
        # Copied lines have the time at which they were copied.
        waited = None if state.is_copying else elapsed_ms(asked.at, at)
        state.put_back(index, message(asked, found, at, waited))
        part = Context("tool_result", None, asked.call_id)
        words = _answers(found.text) if asked.name == ASKS and found.text else None
    state.put(Message(item_id, "user", at, "live", words, None, None, (part,), extra=extra))


def end(state: State, call_id: str, ended: End) -> bool:
    """Add what an event says to its call; tell whether there is such a call."""
    index = state.asked.get(call_id)
    if index is None:
        return False
    asked, entry = state.waiting.get(index), state.entries[index]
    if asked is not None:
        if len(asked.ends) >= _MOST:
            return False
        state.waiting[index] = msgspec.structs.replace(asked, ends=(*asked.ends, ended))
    elif type(entry) is Message and (made := call_in(entry)) is not None:
        state.put_back(index, msgspec.structs.replace(entry, parts=(enriched(made, ended),)))
    return True


def end_script(state: State, told: Record) -> bool:
    """Add what a script did to the call that runs it; tell whether one does."""
    while state.scripts and state.scripts[0] not in state.waiting:
        state.scripts.pop(0)
    if not state.scripts:
        return False
    asked = state.waiting[state.scripts[0]]
    if len(asked.ends) >= _MOST:
        return False
    done = End(extra={DONE: [told]})
    state.waiting[state.scripts[0]] = msgspec.structs.replace(asked, ends=(*asked.ends, done))
    return True


def put_inner(state: State, asked: Asked, ended: End, name: str) -> None:
    """Add a call that only an event tells of: its item is not in this file, or comes later."""
    made = enriched(call(asked, Result(ended.result, "unknown"), asked.at), ended)
    index = state.put(Message(None, "assistant", asked.at, "live", None, asked.model, None, (made,)))
    state.inner[name] = index


def finish(state: State) -> None:
    """Make the messages of calls whose results never came."""
    for index, asked in state.waiting.items():
        state.put_back(index, message(asked, Result(None, "unknown"), None))
    state.waiting.clear()


def _is_unnamed(state: State, index: int) -> bool:
    """Tell whether the call that was asked last has no id."""
    return bool(state.unnamed) and state.unnamed[-1] == index


def _oldest_unnamed(state: State) -> int | None:
    return state.unnamed.pop(0) if state.unnamed else None


def _arguments(payload: Record, state: State) -> tuple[Record, Record | None]:
    """Return a call's arguments, and what stands in their place where it is no object."""
    if "input" in payload:
        return {"input": payload["input"]}, None
    given = payload.get("arguments", payload.get("action"))
    found = as_object(given) if type(given) is str else given
    if type(found) is dict:
        return found, None
    if given in (None, ""):
        prompt = payload.get("revised_prompt")
        return ({} if prompt is None else {"revised_prompt": prompt}), None
    state.notes.kept("unexpected-shape", "the arguments of a call are no object")
    return {}, {"arguments": given}


def _answer_again(state: State, index: int, call_id: str | None, found: Result) -> Context:
    """Keep a second result of one call, if it says something else; return what stands in its place."""
    entry, mention = state.entries[index], Context("tool_result", None, call_id)
    made = call_in(entry)
    if type(entry) is not Message or made is None or found.text in (None, made.result, *made.other_results):
        return mention
    if len(made.other_results) >= _MOST:
        return Context("tool_result", found.text, call_id, found.status == "error", found.attachments)
    made = msgspec.structs.replace(made, other_results=(*made.other_results, found.text))
    state.put_back(index, msgspec.structs.replace(entry, parts=(made,)))
    return mention


def _answers(text: str) -> str | None:
    """Return what a person answered to the questions of an agent."""
    found: Record = as_object(text) or {}
    answers = found.get("answers")
    if type(answers) is not dict:
        return None
    given = [answer.get("answers") for answer in answers.values() if type(answer) is dict]
    texts = [text for listed in given if type(listed) is list for text in listed if type(text) is str]
    return "\n".join(texts) or None


def _take_over(state: State, name: str, index: int) -> None:
    """Withdraw what an event told of this very call before its item came."""
    told = state.inner.pop(name, None)
    known = None if told is None else call_in(state.entries[told])
    if told is not None and known is not None:
        asked = state.waiting[index]
        call_id = known.id if _is_unnamed(state, index) else asked.call_id
        ends = (*asked.ends, as_end(known))
        state.waiting[index] = msgspec.structs.replace(asked, call_id=call_id, ends=ends)
        state.entries[told] = None
