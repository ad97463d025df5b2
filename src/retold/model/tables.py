"""The tables of sessions for Parquet, Spark and the views of SQL, with the meaning of each column.

Plain classes: asking the views needs no library.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 1
"""Raised when a column is removed or changes its meaning, but not for new columns."""
UNKNOWN = "unknown"
"""The month of a row without a time."""
STRING, INT, LONG, BOOL, TIME, MONEY, STRINGS, FILES = (
    "string", "int", "long", "bool", "time", "money", "strings", "files",
)  # fmt: skip
"""Types: text, 32 and 64 bits, a truth, microseconds in UTC, dollars, a list of texts, a list of files."""


class Column:
    """A column: its name, its type, its meaning, and whether it may be empty."""

    __slots__ = ("doc", "is_nullable", "is_said", "name", "type")

    def __init__(self, name: str, kind: str, doc: str, *, needed: bool = False, said: bool = False) -> None:
        self.name, self.type, self.doc, self.is_nullable = name, kind, doc, not needed
        self.is_said = said
        """Whether it holds long texts, which the archive keeps only in the originals."""


class Table:
    """A table: its name, the meaning of a row, and its columns."""

    __slots__ = ("columns", "doc", "name")

    def __init__(self, name: str, doc: str, columns: Sequence[Column]) -> None:
        self.name, self.doc = name, doc
        self.columns = (*COMMON, *columns)

    @property
    def names(self) -> list[str]:
        """The names of the columns in order."""
        return [column.name for column in self.columns]


COMMON = (
    Column("agent", STRING, "`gemini`, `claude` or `codex`.", needed=True),
    Column(
        "month",
        STRING,
        "The month in which the session began, in UTC: `2026-01`; `unknown` where nothing tells.",
        needed=True,
    ),
    Column(
        "home",
        STRING,
        "The label of the home that the session's first file lies in; empty for this machine's own.",
    ),
    Column("project", STRING, "The root of the project; empty where it is not known."),
    Column("session", STRING, "The key of the session: unique in an archive."),
    Column(
        "conversation",
        STRING,
        "What tells the conversation from all others, by its project and the agent's id: the same in every archive and dataset.",
    ),
)
"""What every row begins with, so that most questions need no join."""
_SEQ = Column("seq", INT, "The place of the entry in the session's timeline, from 0.", needed=True)
_PLACE = Column("place", INT, "The place of the call among the parts of its message, from 0.", needed=True)
_AT = Column("happened_at", TIME, "When; empty where nobody recorded it.")
_FATE = Column(
    "fate", STRING, "What became of it: `live`, `rewound`, `compacted` or `superseded`.", needed=True
)
_OWN = Column(
    "own",
    BOOL,
    "False for what was copied from another session, where it is told as well; without an archive, as far as the files themselves say so.",
    needed=True,
)
_CALL = Column("call", STRING, "The agent's id of the call.", needed=True)
_CANONICAL = Column(
    "canonical", STRING, "What kind of tool it is, in words common to all agents.", needed=True
)
_STATUS = Column(
    "status", STRING, "How the call went: `success`, `error`, `cancelled` or `unknown`.", needed=True
)
_TOKENS = (
    Column("input_tokens", LONG, "Tokens of the whole prompt, cache reads and writes included; empty where unrecorded, as all of these."),
    Column("cached_tokens", LONG, "Of these, read from a cache."),
    Column("cache_write_tokens", LONG, "Of these, written to a cache."),
    Column("output_tokens", LONG, "Tokens of the answer, without reasoning."),
    Column("reasoning_tokens", LONG, "Tokens that the model thought with."),
    Column("tool_tokens", LONG, "Tokens of tool use, where the agent counts them apart."),
    Column("total_tokens", LONG, "All tokens, as the agent recorded the total."),
    Column("cache_write_1h_tokens", LONG, "Of what was written to a cache, what was to last an hour."),
)  # fmt: skip
_MONEY = Column("cost_usd", MONEY, "Dollars, by the prices of the day; empty where no price is known.")
_ESTIMATED = Column(
    "estimated", BOOL, "True where the tokens are an estimate: the agent recorded none.", needed=True
)
TABLES = {
    table.name: table
    for table in (
        Table(
            "sessions",
            "One row for each conversation, and for each subagent.",
            (
                Column("native_id", STRING, "The agent's own id of the session."),
                Column("kind", STRING, "`main`, `subagent`, `fork`, `checkpoint`, `prompts-only` or `capture`.", needed=True),
                Column("parent", STRING, "The key of the session that started this one, or that it was forked from."),
                Column("project_key", STRING, "The agent's own name for the project."),
                Column("project_hash", STRING, "The hash under which the agent knows the project."),
                Column("project_evidence", STRING, "How the root is known: `recorded`, `registry`, `hash`, `guessed` or `none`.", needed=True),
                Column("homes", STRINGS, "The labels of all homes that its files lie in.", needed=True),
                Column("title", STRING, "Its title: the user's own, else the agent's, else the first prompt."),
                Column("summary", STRING, "What the agent wrote down that it was about."),
                Column("first_prompt", STRING, "What was asked first."),
                Column("last_prompt", STRING, "What was asked last."),
                Column("tags", STRINGS, "The user's own tags.", needed=True),
                Column("models", STRINGS, "The models that answered.", needed=True),
                Column("started_at", TIME, "When it began."),
                Column("ended_at", TIME, "When something was said or recorded last."),
                Column("are_times_derived", BOOL, "True where nothing recorded a time: they come from the name or the age of the file.", needed=True),
                Column("status", STRING, "How it ended: `success`, `failure` or `interrupted`.", needed=True),
                Column("prompts", INT, "Prompts that a person typed.", needed=True),
                Column("messages", INT, "Messages of every role.", needed=True),
                Column("tool_calls", INT, "Calls of tools.", needed=True),
                Column("tool_errors", INT, "Calls that failed.", needed=True),
                Column("requests", INT, "Requests to a model that are its own.", needed=True),
                *_TOKENS,
                _ESTIMATED,
                _MONEY,
                Column("sources", FILES, "The files that it was read from: home, path, format, bytes, state.", needed=True),
                Column("source_bytes", LONG, "The bytes of these files.", needed=True),
                Column("records", INT, "Records met in them.", needed=True),
                Column("opaque", INT, "Things in them that nobody understands yet; they are kept as they were.", needed=True),
                Column("problems", INT, "Problems met in them: see the table of these.", needed=True),
            ),
        ),
        Table(
            "messages",
            "One row for each entry of a timeline: messages, and events that nobody said.",
            (
                _SEQ,
                Column("id", STRING, "The agent's id of the record; empty where it has none."),
                Column("role", STRING, "`user`, `assistant` or `system`; empty for an event."),
                Column("event", STRING, "The kind of an event: `compaction`, `info`, `warning`, `error` or `notice`."),
                _AT,
                _FATE,
                _OWN,
                Column("is_prompt", BOOL, "True where a person said it.", needed=True),
                Column("model", STRING, "The model that answered."),
                Column("request", STRING, "The id of the request that it came from, as in the table of these."),
                Column("tool_calls", INT, "Calls of tools in it.", needed=True),
                Column("text", STRING, "The human's own words, else all that it says.", said=True),
                Column("thinking", STRING, "What the model thought.", said=True),
                Column("context", STRING, "What the agent put into it; tool results are with their calls.", said=True),
            ),
        ),
        Table(
            "tool_calls",
            "One row for each call of a tool, with its result.",
            (
                _SEQ,
                _PLACE,
                _CALL,
                Column("tool", STRING, "The tool, as the agent calls it.", needed=True),
                _CANONICAL,
                Column("category", STRING, "`Execute`, `Edit`, `Read`, `Search`, `Fetch`, `Think`, `Plan` or `Other`.", needed=True),
                Column("server", STRING, "The MCP server that the tool is of."),
                _STATUS,
                Column("native_status", STRING, "The same in the agent's own words."),
                Column("exit_code", INT, "The exit code of a command."),
                _AT,
                Column("took_ms", LONG, "How long it took, in milliseconds."),
                _FATE,
                _OWN,
                Column("model", STRING, "The model that called it."),
                Column("child", STRING, "The key of the session of the subagent that it started."),
                Column("arguments", STRING, "Its arguments, as JSON.", said=True),
                Column("result", STRING, "What it gave back: all of it, where the agent moved that to a file.", said=True),
                Column("error", STRING, "What went wrong.", said=True),
            ),
        ),
        Table(
            "requests",
            "The ledger: one row for each request to a model, each in one session only, the earliest that holds it; checkpoints and"
            " captures, which are copies, have none.",
            (
                _SEQ,
                Column("request", STRING, "The agent's id of the request, else `<native id>/<message id>`.", needed=True),
                Column("model", STRING, "The model."),
                _AT,
                *_TOKENS,
                _ESTIMATED,
                _MONEY,
                Column("session_started_at", TIME, "When the session began."),
                Column("session_ended_at", TIME, "When the session ended: of several that hold a request, the earliest has it."),
            ),
        ),
        Table(
            "files_touched",
            "One row for each file that a call of a tool names.",
            (
                _SEQ,
                _PLACE,
                _CALL,
                Column("path", STRING, "The path, as the call names it.", needed=True),
                Column("file", STRING, "The same path by the name of the project and the place in it, alike on every machine; a file elsewhere as it is named.", needed=True),
                _CANONICAL,
                Column("is_change", BOOL, "True where the call was to write or edit it.", needed=True),
                _STATUS,
                _AT,
                _FATE,
                _OWN,
            ),
        ),
        Table(
            "events",
            "The normalised events of a session, in order: what `retold events --text` tells, without results.",
            (
                Column("seq", INT, "The place of the event in the session, from 0.", needed=True),
                Column(
                    "event",
                    STRING,
                    "`session_start`, `user_prompt`, `assistant_text`, `tool_use`, `tool_result` or `session_end`.",
                    needed=True,
                ),
                _AT,
                Column("at_derived", BOOL, "True where the record has no time of its own.", needed=True),
                _FATE,
                Column("message", STRING, "The id of the message that it is told by."),
                Column("call", STRING, "The id of the call: its arguments and its result are in the table of these."),
                Column("tool", STRING, "The tool, as the agent calls it."),
                Column("canonical", STRING, "What kind of tool it is, in words common to all agents."),
                Column("category", STRING, "The category of the tool."),
                Column("status", STRING, "How the call went, or how the session ended."),
                Column("text", STRING, "What was said: of prompts and of answers.", said=True),
            ),
        ),
        Table(
            "problems",
            "One row for each thing that went wrong while reading: of a session, or of a file that holds none.",
            (
                Column("code", STRING, "What kind of problem it is: see the reference of these.", needed=True),
                Column("severity", STRING, "`loss`, `warning` or `note`.", needed=True),
                Column("message", STRING, "What is wrong, in words.", needed=True),
                Column("path", STRING, "The file.", needed=True),
                Column("line", LONG, "The line, from 1."),
                Column("pointer", STRING, "The place in a record, as a JSON pointer.", needed=True),
            ),
        ),
    )
}  # fmt: skip
