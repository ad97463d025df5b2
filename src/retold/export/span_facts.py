"""What spans say about themselves: attributes under the names of the conventions, and under ours where there is none."""

from collections.abc import Iterable, Sequence

from retold.export.dialogue import ModelTurn, Said, agent_version, text_of
from retold.export.gen_ai import input_message, outcome, output_message, provider, said_message, tokens
from retold.model.serialization import encoded
from retold.model.session import AgentDisplay, Event, Fate, Message, Session, ToolCall
from retold.model.usage import Totals

Value = str | int | bool
Attributes = dict[str, Value]
ERRORS = {"error": "tool_error", "cancelled": "cancelled"}
"""How `error.type` names what became of a call."""
_OUTSIDE = ("mcp", "web_access")
"""Tools that reach something outside."""
_WIDEST = 2**63


def of_session(session: Session) -> Attributes:
    """Return what is told of a session as a whole."""
    told = {
        "gen_ai.provider.name": provider(session.models),
        "gen_ai.agent.id": session.key,
        "gen_ai.agent.version": agent_version(session),
        "gen_ai.request.model": session.models[0] if session.models else None,
        "error.type": "failure" if session.status == "failure" else None,
        "retold.title": session.title,
        "retold.kind": session.kind,
        "retold.status": session.status,
        "retold.parent": session.parent,
        "retold.native_id": session.native_id,
        "retold.project.root": session.project.root,
        "retold.cost_usd": None if session.cost_usd is None else str(session.cost_usd),
        "retold.times_derived": True if session.are_times_derived else None,
    }
    facts: Attributes = {name: value for name, value in told.items() if value is not None}
    return facts | _of_usage(session.usage) if not _has_usage(session) else facts


def of_turn(turn: Sequence[Said], number: int) -> Attributes:
    """Return what is told of a turn: what the person said, and what was said to them at last."""
    asked = [said for said in turn if isinstance(said, Message)]
    answers = [said for said in turn if isinstance(said, ModelTurn) and text_of(said.parts)]
    told: Attributes = {"retold.turn": number}
    if asked:
        told["gen_ai.input.messages"] = as_json([input_message(message) for message in asked])
    if answers:
        told["gen_ai.output.messages"] = as_json([said_message(text_of(answers[-1].parts))])
    return told


def of_request(answer: ModelTurn, given: Sequence[object], models: Iterable[str]) -> Attributes:
    """Return what is told of a request and its answer."""
    told: Attributes = {"gen_ai.provider.name": provider([answer.model, *models])}
    if answer.model:
        told |= {"gen_ai.request.model": answer.model, "gen_ai.response.model": answer.model}
    if answer.messages[0].response:
        told["gen_ai.response.id"] = answer.messages[0].response
    if answer.usage is not None:
        told |= _of_usage(answer.usage)
    if given:
        told["gen_ai.input.messages"] = as_json(given)
    told["gen_ai.output.messages"] = as_json([output_message(answer)])
    return told | of_fate(answer.fate)


def of_call(call: ToolCall, fate: Fate) -> Attributes:
    """Return what is told of a tool and what it was used for."""
    told: Attributes = {
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "extension" if call.server or call.canonical in _OUTSIDE else "function",
        "retold.tool.canonical": call.canonical,
        "retold.tool.category": call.category,
        "retold.tool.status": call.status,
    }
    if call.arguments:
        told["gen_ai.tool.call.arguments"] = as_json(call.arguments)
    if result := outcome(call):
        told["gen_ai.tool.call.result"] = result
    if call.exit_code is not None:
        told["process.exit.code"] = _number(call.exit_code)
    if call.status in ERRORS:
        told["error.type"] = ERRORS[call.status]
    return told | of_fate(fate)


def of_event(event: Event) -> Attributes:
    """Return what is told of something that happened in between."""
    told: Attributes = {"retold.text": event.text, **of_fate(event.fate)}
    return told if event.opaque is None else told | {"retold.opaque": as_json(event.opaque.value)}


def of_fate(fate: Fate) -> Attributes:
    """Return what became of something, unless it is still there."""
    return {} if fate == "live" else {"retold.fate": fate}


def agent_name(call: ToolCall, session: Session) -> str:
    """Return what a subagent is called."""
    named = call.display.name if isinstance(call.display, AgentDisplay) else None
    return named or session.agent


def as_json(value: object) -> str:
    """Return a value as JSON: few receivers take attributes that are more than text and numbers."""
    return encoded(value).decode()


def _of_usage(usage: Totals) -> Attributes:
    told: Attributes = {name: _number(figure) for name, figure in tokens(usage)}
    return told | {"retold.estimated": True} if usage.estimated else told


def _has_usage(session: Session) -> bool:
    """Tell whether requests have tokens of their own: then the whole has none, or they would be counted twice."""
    return any(isinstance(entry, Message) and entry.usage is not None for entry in session.timeline)


def _number(figure: int) -> Value:
    """Return a figure; one that no attribute has room for, as text: a transcript may claim anything."""
    return figure if -_WIDEST <= figure < _WIDEST else str(figure)
