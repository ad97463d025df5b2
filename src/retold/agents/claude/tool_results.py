"""What a tool gave back: the model's copy, and the structured twin that Claude Code keeps for its own screen."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.claude.discovery import is_session_id
from retold.agents.claude.raw import Record
from retold.model.problem import Problem
from retold.model.session import AgentDisplay, Attachment, DiffDisplay, Display, Todo, TodosDisplay
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, FileBytes, list_folder, printable, read_bytes
from retold.reading.json_decode import as_text

_WRAPPED = ("<tool_use_error>", "</tool_use_error>")


class Result(msgspec.Struct, frozen=True, gc=False):
    """A result as the model saw it, with its twin."""

    text: str | None
    is_error: bool
    attachments: tuple[Attachment, ...] = ()
    twin: Any = None
    rest: list[Any] | None = None
    """Blocks that are neither text nor attachments."""


def result(content: Any, is_error: bool | None, twin: Any) -> Result:  # noqa: FBT001 - as recorded
    """Return what a `tool_result` block holds; a wrapped message is an error whatever the flag says."""
    if type(content) is str:
        return _of_text(content, is_error is True, twin)
    if content is None:
        return Result(None, is_error is True, twin=twin)
    texts: list[str] = []
    attachments: list[Attachment] = []
    rest: list[Any] = []
    for block in content if type(content) is list else [content]:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image" | "document", "source": dict(source)}:
                attachments.append(attachment(source))
            case _:
                rest.append(block)
    found = _of_text("\n".join(texts), is_error is True, twin) if texts else Result(None, is_error is True)
    return Result(found.text, found.is_error, tuple(attachments), twin, rest or None)


def served(block: Record) -> Result:
    """Return what a tool gave back that ran at the API: pages that were found, or why there are none."""
    content = block.get("content")
    found = content if type(content) is list else [content]
    lines = [
        str(page[key])
        for page in found
        if type(page) is dict
        for key in ("title", "url", "text", "error_code")
        if page.get(key)
    ]
    is_error = type(content) is dict and "error_code" in content
    return Result("\n".join(lines) or None, is_error or block.get("is_error") is True, (), None, found)


def _of_text(text: str, is_error: bool, twin: Any) -> Result:  # noqa: FBT001 - as recorded
    if text.startswith(_WRAPPED[0]):
        return Result(text.removeprefix(_WRAPPED[0]).removesuffix(_WRAPPED[1]), is_error=True, twin=twin)
    return Result(text, is_error, (), twin)


def attachment(source: Record) -> Attachment:
    """Return a picture or a document, with its bytes or its address."""
    media, data, url = (source.get(key) for key in ("media_type", "data", "url"))
    return Attachment(
        path=url if type(url) is str else None,
        media_type=media if type(media) is str else None,
        data=data if type(data) is str else None,
    )


class Shown(msgspec.Struct, frozen=True, gc=False):
    """What a twin says beyond the result itself."""

    display: Display | None = None
    agent_id: str | None = None
    was_interrupted: bool = False
    moved_to: str | None = None
    """The file to which a large output was moved."""
    extra: Any = None
    """What no field of ours tells."""


NOTHING = Shown()
_OUTPUTS = ("stdout", "stderr", "content", "result")
"""Where a piece of what the model got may stand."""
_HUNK = ("oldStart", "oldLines", "newStart", "newLines", "lines")


def shown(twin: Any, text: str | None, arguments: Record) -> Shown:
    """Return what a twin adds to the text of the result and to what the call was given; repetitions are left out."""
    if type(twin) is not dict:
        is_known = _says_nothing(twin) or _repeats(twin, text, arguments, is_output=True)
        return NOTHING if is_known else Shown(extra=twin)
    beyond = {
        key: value
        for key, value in twin.items()
        if value != text
        and value is not False
        and not _says_nothing(value)
        and not _repeats(value, text, arguments, is_output=key in _OUTPUTS)
    }
    if not beyond:
        return NOTHING
    if type(twin.get("structuredPatch")) is list:
        return Shown(display=_diff(twin, beyond))
    if type(twin.get("newTodos")) is list:
        return Shown(display=_todos(twin, beyond))
    agent_id, moved_to = twin.get("agentId"), twin.get("persistedOutputPath")
    display = None
    if type(agent_id) is str:
        display, beyond = _agent(twin, beyond), {}
    return Shown(
        display=display,
        agent_id=agent_id if type(agent_id) is str else None,
        was_interrupted=twin.get("interrupted") is True,
        moved_to=moved_to if type(moved_to) is str else None,
        extra=beyond or None,
    )


def _says_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _repeats(value: Any, text: str | None, arguments: Record, *, is_output: bool) -> bool:
    """Tell whether a value stands elsewhere; errors stand in the twin with a word before them."""
    if value == text:
        return True
    if is_output and text is not None and type(value) is str:
        return value.strip().removeprefix("Error: ") in text
    if is_output and text is not None and type(value) is list:
        return all(_is_text_in(item, text) for item in value)
    return value in arguments.values()


def _is_text_in(item: Any, text: str) -> bool:
    match item:
        case {"type": "text", "text": str(said), **rest}:
            return not rest and said in text
        case _:
            return False


def answers(twin: Any) -> str | None:
    """Return what a person answered to the model's questions, and noted beside; None where nothing was asked."""
    match twin:
        case {"questions": _, "answers": dict(answered)}:
            notes = twin.get("annotations")
            held = [*answered.values(), *_noted(notes if type(notes) is dict else {})]
            words = [item if type(item) is str else msgspec.json.encode(item).decode() for item in held]
            return "\n".join(word for word in words if word.strip()) or None
        case _:
            return None


def _noted(annotations: Record) -> Iterator[Any]:
    return (note["notes"] for note in annotations.values() if type(note) is dict and "notes" in note)


def _diff(twin: Record, beyond: Record) -> DiffDisplay:
    """Return a file before and after; what does not fit stays beside it."""
    hunks = list(_hunks(twin["structuredPatch"]))
    if len(hunks) == len(twin["structuredPatch"]):
        beyond.pop("structuredPatch", None)
    is_new = twin.get("type") == "create"
    if is_new:
        beyond.pop("type", None)
    before = "originalFile" if "originalFile" in twin else "originalFileContents"
    path, old, new = (_taken(twin, beyond, key) for key in ("filePath", before, "content"))
    return DiffDisplay(path, "\n".join(hunks) or None, old, new, is_new or None, beyond or None)


def _taken(twin: Record, beyond: Record, key: str) -> str | None:
    """Return a text of the twin, and take it out of what is left of it."""
    value = twin.get(key)
    if type(value) is not str:
        return None
    beyond.pop(key, None)
    return value


def _hunks(patch: list[Any]) -> Iterator[str]:
    """Yield each piece of a patch in the usual form."""
    for hunk in patch:
        if type(hunk) is dict and hunk.keys() == set(_HUNK) and type(hunk["lines"]) is list:
            start, old, place, new, lines = (hunk[key] for key in _HUNK)
            yield "\n".join([f"@@ -{start},{old} +{place},{new} @@", *map(str, lines)])


def _todos(twin: Record, beyond: Record) -> TodosDisplay:
    """Return the list as it is afterwards; the call was given the same, and more of each."""
    todos = [todo for todo in twin["newTodos"] if type(todo) is dict and type(todo.get("content")) is str]
    if len(todos) == len(twin["newTodos"]) and all(todo.keys() <= {"content", "status"} for todo in todos):
        beyond.pop("newTodos", None)
    told = [
        Todo(todo["content"], todo["status"] if type(todo.get("status")) is str else None) for todo in todos
    ]
    return TodosDisplay(tuple(told), beyond or None)


def _agent(twin: Record, beyond: Record) -> AgentDisplay:
    """Return how a subagent went; its result is that of the call."""
    beyond.pop("agentId", None)
    name, state = (_taken(twin, beyond, key) for key in ("agentType", "status"))
    return AgentDisplay(name, state, extra=beyond or None)


MARK = "<persisted-output>"
_RESULTS = "tool-results"


class Outputs:
    """The files beside a transcript; only what lies in a session's own folder is opened, whatever a line names."""

    def __init__(self, session_folder: str, notes: ReaderNotes, disk: Disk) -> None:
        """Take the session's folder, where to tell what is missing, and where to look."""
        self.session_folder, self.notes, self.disk = session_folder, notes, disk
        self._names = cache(partial(_names, disk=disk))

    def full(self, text: str | None, moved_to: str | None) -> str | None:
        """Return the whole output that a result is an extract of."""
        if moved_to is None or text is None or MARK not in text[:200]:
            return None
        name = moved_to.replace("\\", "/").rpartition("/")[2]
        for folder in self._folders(moved_to):
            if name in self._names(folder):
                file = read_bytes(folder / name, self.disk)
                return as_text(file.data)[0] if isinstance(file, FileBytes) else None
        self.notes.add("missing-output", printable(name))
        return None

    def _folders(self, moved_to: str) -> list[Path]:
        """Return where the file may lie: a fork's lines still name the folder of the session that they are copied from."""
        own = Path(self.session_folder)
        *_, session, folder, _ = ("", "", *moved_to.replace("\\", "/").split("/"))
        is_sibling = folder == _RESULTS and is_session_id(session) and session != own.name
        return [own / _RESULTS, own.parent / session / _RESULTS] if is_sibling else [own / _RESULTS]


def _names(folder: Path, disk: Disk) -> frozenset[str]:
    """Return the files that lie there; a link may lead anywhere, and is none of them."""
    if disk.is_link(str(folder)) or disk.is_link(str(folder.parent)):
        return frozenset()
    found = (entry for entry in list_folder(folder, disk) if not isinstance(entry, Problem))
    return frozenset(entry.name for entry in found if entry.is_file(follow_symlinks=False))
