"""Normalises results of tools: the model's copy, its structured twin for the screen, and outputs moved to files."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.claude.discovery import is_session_id
from retold.agents.claude.raw import Record
from retold.model.session import AgentDisplay, Attachment, DiffDisplay, Display, Todo, TodosDisplay
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, FileBytes, files_in, printable_path, read_bytes
from retold.reading.json_decode import decode_text

_ERROR_TAGS = ("<tool_use_error>", "</tool_use_error>")


class Result(msgspec.Struct, frozen=True, gc=False):
    """A result as the model saw it, with its twin."""

    text: str | None
    is_error: bool
    attachments: tuple[Attachment, ...] = ()
    twin: Any = None
    rest: list[Any] | None = None
    """Blocks that are neither text nor attachments."""


def normalise_result(content: Any, is_error: bool | None, twin: Any) -> Result:  # noqa: FBT001 - as recorded
    """Return the result in a `tool_result` block; a message in error tags is an error whatever the flag says."""
    if type(content) is str:
        return _text_result(content, is_error is True, twin)
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
                attachments.append(make_attachment(source))
            case _:
                rest.append(block)
    found = (
        _text_result("\n".join(texts), is_error is True, twin) if texts else Result(None, is_error is True)
    )
    return Result(found.text, found.is_error, tuple(attachments), twin, rest or None)


def normalise_server_result(block: Record) -> Result:
    """Return the result of a tool that the API ran: the pages found, or an error code."""
    content = block.get("content")
    blocks = content if type(content) is list else [content]
    lines = [
        str(page[key])
        for page in blocks
        if type(page) is dict
        for key in ("title", "url", "text", "error_code")
        if page.get(key)
    ]
    is_error = type(content) is dict and "error_code" in content
    return Result("\n".join(lines) or None, is_error or block.get("is_error") is True, (), None, blocks)


def _text_result(text: str, is_error: bool, twin: Any) -> Result:  # noqa: FBT001 - as recorded
    if text.startswith(_ERROR_TAGS[0]):
        return Result(
            text.removeprefix(_ERROR_TAGS[0]).removesuffix(_ERROR_TAGS[1]), is_error=True, twin=twin
        )
    return Result(text, is_error, (), twin)


def make_attachment(source: Record) -> Attachment:
    """Return a picture or a document, with its bytes or its address."""
    media, data, url = (source.get(key) for key in ("media_type", "data", "url"))
    return Attachment(
        path=url if type(url) is str else None,
        media_type=media if type(media) is str else None,
        data=data if type(data) is str else None,
    )


class TwinDetails(msgspec.Struct, frozen=True, gc=False):
    """The fields of a twin that the result lacks."""

    display: Display | None = None
    agent_id: str | None = None
    was_interrupted: bool = False
    moved_to: str | None = None
    """The file to which a large output was moved."""
    extra: Any = None
    """The fields of the twin without a field in the model."""


NO_DETAILS = TwinDetails()
_OUTPUTS = ("stdout", "stderr", "content", "result")
"""Fields of a twin that may hold a piece of the model's text."""
_HUNK = ("oldStart", "oldLines", "newStart", "newLines", "lines")


def compare_twin(twin: Any, text: str | None, arguments: Record) -> TwinDetails:
    """Return what a twin adds to the result's text and the call's arguments, without repetitions."""
    if type(twin) is not dict:
        is_known = _says_nothing(twin) or _repeats(twin, text, arguments, is_output=True)
        return NO_DETAILS if is_known else TwinDetails(extra=twin)
    beyond = {
        key: value
        for key, value in twin.items()
        if value != text
        and value is not False
        and not _says_nothing(value)
        and not _repeats(value, text, arguments, is_output=key in _OUTPUTS)
    }
    if not beyond:
        return NO_DETAILS
    if type(twin.get("structuredPatch")) is list:
        return TwinDetails(display=_make_diff(twin, beyond))
    if type(twin.get("newTodos")) is list:
        return TwinDetails(display=_make_todos(twin, beyond))
    agent_id, moved_to = twin.get("agentId"), twin.get("persistedOutputPath")
    display = None
    if type(agent_id) is str:
        display, beyond = _make_agent_display(twin, beyond), {}
    return TwinDetails(
        display=display,
        agent_id=agent_id if type(agent_id) is str else None,
        was_interrupted=twin.get("interrupted") is True,
        moved_to=moved_to if type(moved_to) is str else None,
        extra=beyond or None,
    )


def _says_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _repeats(value: Any, text: str | None, arguments: Record, *, is_output: bool) -> bool:
    """Return whether a value repeats the text or an argument; errors have a word in front of them in the twin."""
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
    """Return a person's answers and notes to the model's questions; None if there are none."""
    match twin:
        case {"questions": _, "answers": dict(answered)}:
            notes = twin.get("annotations")
            given = [*answered.values(), *_noted_answers(notes if type(notes) is dict else {})]
            words = [item if type(item) is str else msgspec.json.encode(item).decode() for item in given]
            return "\n".join(word for word in words if word.strip()) or None
        case _:
            return None


def _noted_answers(annotations: Record) -> Iterator[Any]:
    return (note["notes"] for note in annotations.values() if type(note) is dict and "notes" in note)


def _make_diff(twin: Record, beyond: Record) -> DiffDisplay:
    """Return a file before and after; other fields stay in `beyond`."""
    hunks = list(_hunks(twin["structuredPatch"]))
    if len(hunks) == len(twin["structuredPatch"]):
        beyond.pop("structuredPatch", None)
    is_new = twin.get("type") == "create"
    if is_new:
        beyond.pop("type", None)
    before = "originalFile" if "originalFile" in twin else "originalFileContents"
    path, old, new = (_take_text(twin, beyond, key) for key in ("filePath", before, "content"))
    return DiffDisplay(path, "\n".join(hunks) or None, old, new, is_new or None, beyond or None)


def _take_text(twin: Record, beyond: Record, key: str) -> str | None:
    """Return a text of the twin and remove it from `beyond`."""
    value = twin.get(key)
    if type(value) is not str:
        return None
    beyond.pop(key, None)
    return value


def _hunks(patch: list[Any]) -> Iterator[str]:
    """Yield each hunk of a patch in unified form."""
    for hunk in patch:
        if type(hunk) is dict and hunk.keys() == set(_HUNK) and type(hunk["lines"]) is list:
            start, old, place, new, lines = (hunk[key] for key in _HUNK)
            yield "\n".join([f"@@ -{start},{old} +{place},{new} @@", *map(str, lines)])


def _make_todos(twin: Record, beyond: Record) -> TodosDisplay:
    todos = [todo for todo in twin["newTodos"] if type(todo) is dict and type(todo.get("content")) is str]
    if len(todos) == len(twin["newTodos"]) and all(todo.keys() <= {"content", "status"} for todo in todos):
        beyond.pop("newTodos", None)
    tasks = [
        Todo(todo["content"], todo["status"] if type(todo.get("status")) is str else None) for todo in todos
    ]
    return TodosDisplay(tuple(tasks), beyond or None)


def _make_agent_display(twin: Record, beyond: Record) -> AgentDisplay:
    """Return the state of a subagent; its result is that of the call."""
    beyond.pop("agentId", None)
    name, state = (_take_text(twin, beyond, key) for key in ("agentType", "status"))
    return AgentDisplay(name, state, extra=beyond or None)


MOVED_OUTPUT_MARK = "<persisted-output>"
_RESULTS = "tool-results"


class OutputFiles:
    """The output files of a session; only files in its own folder are opened, whatever a line names."""

    def __init__(self, session_folder: str, notes: ReaderNotes, disk: Disk) -> None:
        """Take the session's folder, the notes for missing files, and the disk."""
        self.session_folder, self.notes, self.disk = session_folder, notes, disk
        self._names = cache(partial(_list_names, disk=disk))

    def full_text(self, text: str | None, moved_to: str | None) -> str | None:
        """Return the whole output of an extract."""
        if moved_to is None or text is None or MOVED_OUTPUT_MARK not in text[:200]:
            return None
        name = moved_to.replace("\\", "/").rpartition("/")[2]
        for folder in self._folders(moved_to):
            if name in self._names(folder):
                file = read_bytes(folder / name, self.disk)
                return decode_text(file.data)[0] if isinstance(file, FileBytes) else None
        self.notes.add("missing-output", printable_path(name))
        return None

    def _folders(self, moved_to: str) -> list[Path]:
        """Return the possible folders of a file: a fork's lines still name the folder of the session they were copied from."""
        own = Path(self.session_folder)
        *_, session, folder, _ = ("", "", *moved_to.replace("\\", "/").split("/"))
        is_sibling = folder == _RESULTS and is_session_id(session) and session != own.name
        return [own / _RESULTS, own.parent / session / _RESULTS] if is_sibling else [own / _RESULTS]


def _list_names(folder: Path, disk: Disk) -> frozenset[str]:
    """Return the names of the regular files in a folder; links are left out, as they may lead anywhere."""
    if disk.is_link(str(folder)) or disk.is_link(str(folder.parent)):
        return frozenset()
    return frozenset(entry.name for entry in files_in(folder, disk))
