"""What sessions took, counted without reading what was said in them.

Only transcripts in which everything that bears on a count is plain: one session's lines, each once and under an id of its
own, one conversation to a file. Copies, resumes of 1.0, subagents inside a main file and odd lines are left to `read`.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import UNSET

from retold.agents.claude.counts import AnswerRecord, LineRecord, UsageRecord, decode
from retold.agents.claude.places import Origin, is_session_id, origin
from retold.agents.protocol import Source
from retold.model.metered import Metered, Unsure
from retold.model.project import Project, root_hash
from retold.model.request import Figures, Request, micros
from retold.reading.streams import whole_lines

_SYNTHETIC = "<synthetic>"
_SAID = frozenset(("assistant", "user"))
_DATED = frozenset(("system", "attachment", "queue-operation"))
"""Lines that always have a place, and a time, beside those of the conversation."""
_CONTENT = frozenset(b'["')


class Transcript:
    """What is counted of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.origin: Origin = origin(source.path)
        self.session: str | None = None
        self.agent_id: str | None = None
        self.names: list[str] = []
        self.folder: str | None = None
        self.times: list[datetime] = []
        self.beside: list[LineRecord] = []
        """Lines that are not of the conversation itself."""
        self.responses: dict[str, tuple[LineRecord, UsageRecord]] = {}
        self.has_answers = False

    def said(self, line: LineRecord) -> None:
        """Take a line of the conversation in."""
        message = line.message
        if message is None or line.uuid is None or line.timestamp is None:
            raise Unsure
        if message.spread is not UNSET or memoryview(message.content)[0] not in _CONTENT:
            raise Unsure
        if line.session_id != self.session and line.session_id is not None:
            if self.session is not None:
                raise Unsure  # whose lines these are decides what they count for
            self.session = line.session_id
        if self.origin.agent_id is not None:
            self.agent_id = self.agent_id or line.agent_id or self.origin.agent_id
        elif line.is_sidechain:
            raise Unsure
        if self.folder is None and line.cwd is not None:
            if any(other.cwd not in (None, line.cwd) for other in self.beside):
                raise Unsure  # where it began may be told by a line of another kind
            self.folder = line.cwd
        self.times.append(line.timestamp)
        self.names.append(line.uuid)
        if line.type == "assistant":
            self.answered(line, message)

    def answered(self, line: LineRecord, message: AnswerRecord) -> None:
        """Count a response; of its lines the last counts that tells no less output than those before."""
        name = message.id or line.request_id or f"{line.session_id}/{line.uuid}"
        known = self.responses.get(name)
        if known is not None and line.parent_uuid is None:
            raise Unsure
        self.has_answers = self.has_answers or message.model != _SYNTHETIC
        usage = message.usage
        if usage is None or message.model == _SYNTHETIC or line.is_api_error_message:
            return
        if _counts(usage) == (None, None, None, None):
            raise Unsure
        if known is None or (known[1].output_tokens or 0) <= (usage.output_tokens or 0):
            self.responses[name] = (line, usage)


def meter(sources: Sequence[Source]) -> Sequence[Metered] | None:
    """Return what the conversations of one cluster took; None where only reading all of it tells."""
    try:
        found = [_conversation(_transcript(source)) for source in sources]
    except (Unsure, OSError, ValueError, RecursionError):
        return None
    # Copies of a conversation are one; and one in which nothing was spent may have the name of another.
    is_plain = len({one.group for one in found}) == len(found)
    return found if is_plain and (len(found) == 1 or all(one.requests for one in found)) else None


def _transcript(source: Source) -> Transcript:
    made = Transcript(source)
    said, beside = made.said, made.beside
    for raw in whole_lines(source.path, source.disk):
        line = decode(raw)
        if line.type in _SAID:
            said(line)
        else:
            beside.append(line)
    return made


def _conversation(made: Transcript) -> Metered:
    """Return a transcript as `sessions` tells it."""
    place, agent_id = made.origin, made.agent_id
    if made.has_answers and not made.responses:
        raise Unsure
    names = [*made.names, *(line.uuid for line in made.beside if line.uuid is not None)]
    if len(set(names)) < len(names) or (
        made.folder is None and any(line.cwd is not None for line in made.beside)
    ):
        raise Unsure
    started_at, ended_at = _span(made)
    is_named = place.agent_id is None and is_session_id(place.stem)
    native_id = place.stem if is_named else made.session
    session_id = place.parent_id or native_id or place.stem
    if not is_session_id(session_id):
        raise Unsure
    root, key = made.folder, f"claude:{session_id}"
    project = Project(
        root, place.project_key, root_hash(root) if root else None, "recorded" if root else "none"
    )
    return Metered(
        f"{session_id}:{agent_id or ''}",
        agent_id or native_id,
        f"{key}/{agent_id}" if agent_id else key,
        "subagent" if agent_id else "main",
        key if agent_id else None,
        project,
        started_at,
        ended_at,
        (made.source.shown,),
        list(_requests(made)),
    )


def _span(made: Transcript) -> tuple[datetime, datetime]:
    """Return when the first and the last thing happened."""
    dated = [line for line in made.beside if line.timestamp is not None]
    own = [line for line in dated if line.type in _DATED and line.session_id in (None, made.session)]
    times = [*made.times, *(line.timestamp for line in own if line.timestamp is not None)]
    if not made.times or not all([at.tzinfo is UTC for at in times]):
        raise Unsure
    started_at, ended_at = min(times), max(times)
    if not all(line.timestamp is not None and started_at <= line.timestamp <= ended_at for line in dated):
        raise Unsure  # another session's, or of a kind that need not be told
    return started_at, ended_at


def _requests(made: Transcript) -> Iterator[Request]:
    for name, (line, usage) in made.responses.items():
        model = None if line.message is None else line.message.model
        yield Request(name, model, micros(line.timestamp), _figures(usage))


def _counts(usage: UsageRecord) -> tuple[int | None, ...]:
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
    )


def _figures(usage: UsageRecord) -> Figures:
    """Return the counts as `tokens` does: the whole prompt is a sum, and thinking is told apart."""
    given, output, read, written = _counts(usage)
    prompt = [count for count in (given, read, written) if count is not None]
    whole = [count for count in (*prompt, output) if count is not None]
    details, split = usage.output_tokens_details, usage.cache_creation
    thought = None if details is None else details.thinking_tokens
    if thought is not None and thought > (output or 0):
        thought = None
    return (
        sum(prompt) if prompt else None,
        read,
        written,
        output if output is None or thought is None else output - thought,
        thought,
        None,
        sum(whole) if whole else None,
        None if split is None else split.ephemeral_1h_input_tokens,
    )
