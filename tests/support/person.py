"""A fake user with a home and an archive: runs `retold` and reads everything in the archive."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import apsw

from retold.archive.index.reader import Index
from retold.archive.store import Store
from retold.cli.main import main
from retold.projects.matching import matches_project

Json = dict[str, Any]
Row = tuple[Any, ...]
AGENTS = (".gemini", ".claude", ".codex")
CLEARED_VARIABLES = ("GEMINI_", "CLAUDE_", "CODEX_", "XDG_", "RETOLD_")
is_root = hasattr(os, "geteuid") and os.geteuid() == 0


class CommandResult(NamedTuple):
    """The exit code and the output of a finished command."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[Json]:
        return [json.loads(line) for line in self.out.splitlines()]


class Person:
    """A fake user who runs `retold` in a home of their own."""

    def __init__(self, folder: Path, archive: Path | None = None) -> None:
        self.folder = folder
        self.archive = archive or folder / "retold"
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def env(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED_VARIABLES)}
        return env | {"HOME": str(self.folder), "RETOLD_HOME": str(self.archive), "COLUMNS": "80"}

    def run(self, *arguments: str) -> CommandResult:
        """Run a command in this process, which is much faster than starting another."""
        out, err = _stream(), _stream()
        with patch.dict(os.environ, self.env, clear=True), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
        return CommandResult(code, _written(out), _written(err))

    def start(self, *arguments: str, code: str = "", **options: Any) -> subprocess.Popen[str]:
        """Start a command in a process and a process session of its own; `code` runs before it."""
        told = f"import sys\n{code}\nfrom retold.cli.main import main\nsys.exit(main({list(arguments)!r}))\n"
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-c", told],
            **{"env": self.env, "text": True, "start_new_session": True, **streams, **options},
        )

    def spawn(self, *arguments: str, code: str = "", **options: Any) -> CommandResult:
        """Run a command in a process of its own."""
        process = self.start(*arguments, code=code, **options)
        out, err = process.communicate(timeout=120)
        return CommandResult(process.returncode, out or "", err or "")

    def sync(self, *arguments: str) -> Json:
        """Sync the archive and return the JSON report; nothing may go to stderr."""
        done = self.run("sync", "--json", *arguments)
        assert (done.code, done.err) == (0, ""), done
        return done.objects[0]

    def search(self, *arguments: str) -> list[Json]:
        """Return the conversations that a search finds; the command may print nothing else."""
        done = self.run("search", "--json", *arguments)
        assert done.code == (0 if done.out else 1), done
        first, *others = done.err.splitlines() or [""]
        assert first == ("" if done.out else "retold: nothing found"), done
        assert all(re.match("retold: no (tool|model|tag|home) is called ", line) for line in others), done
        return done.objects

    def keys(self, *arguments: str) -> list[str]:
        return [found["key"] for found in self.search(*arguments)]

    def show(self, key: str, *arguments: str) -> Json:
        done = self.run("show", "--json", key, *arguments)
        assert (done.code, done.err) == (0, ""), done
        (session,) = done.objects
        return session

    def rows(self) -> dict[str, Json]:
        """Return every session by key, without its timeline."""
        return {row["key"]: row for row in self.run("list", "--all", "--json").objects}

    def sessions(self) -> dict[str, Json]:
        """Return every session by key, as `retold show` prints it."""
        return {key: self.show(key) for key in self.rows()}

    def sources(self) -> Iterator[Path]:
        """Yield every file in the agents' homes."""
        for agent in AGENTS:
            yield from (path for path in sorted((self.folder / agent).rglob("*")) if path.is_file())

    def age(self, seconds: int = 60) -> None:
        """Set the times in the agents' homes back, so that a sync trusts them."""
        paths = [path for agent in AGENTS for path in (self.folder / agent).rglob("*")]
        for path in (*paths, *(self.folder / agent for agent in AGENTS), self.folder):
            if path.exists():
                status = path.stat()
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - seconds * 1_000_000_000))

    def files(self) -> Iterator[Path]:
        """Yield every file in the archive's folder."""
        return (path for path in sorted(self.archive.rglob("*")) if path.is_file())


def _stream() -> TextIOWrapper:
    return TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    raw = stream.detach()
    assert isinstance(raw, BytesIO)
    return raw.getvalue().decode()


def session_text(session: Json) -> str:
    """Return the timeline and the summary of a session as one text."""
    return json.dumps([session["timeline"], session["summary"]], ensure_ascii=False)


def source_states(session: Json) -> list[str]:
    """Return the states of a session's files, sorted."""
    return sorted(source["state"] for source in session["sources"])


def without_source_states(sessions: Mapping[str, Json]) -> dict[str, Json]:
    """Return sessions without the states of their files."""
    return {key: {**one, "sources": _stateless(one["sources"])} for key, one in sessions.items()}


def _stateless(sources: Iterable[Json]) -> list[Json]:
    return [{name: value for name, value in source.items() if name != "state"} for source in sources]


# Contents of an archive ------------------------------------------------------------------------------------------

VOLATILE_COLUMNS = {"facts": None, "sources": ("read_ns", "identity"), "tombstones": ("forgotten_at",)}
"""Columns, or whole tables (None), whose contents may differ after every sync."""
_NUMBERS = ("id", "read_ns", "identity", "forgotten_at")


def archive_tables(folder: Path) -> dict[str, list[Row]]:
    """Return every row of the archive and of its index files, without volatile columns."""
    found = {}
    for path in (folder / "archive.db", *sorted((folder / "index").glob("*.db"))):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        for name, columns in _tables(connection).items():
            left_out = VOLATILE_COLUMNS.get(name, ())
            if left_out is not None:
                kept = ", ".join(column for column in columns if column not in left_out)
                asked = f"SELECT {kept} FROM {name}"  # noqa: S608 - fixed SQL
                found[f"{path.name} {name}"] = sorted(connection.execute(asked), key=repr)
        connection.close()
    return found


def _tables(connection: apsw.Connection) -> dict[str, list[str]]:
    names = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%' AND name NOT LIKE 'sqlite%'"
        )
    ]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


def renames_undone(step: str) -> Iterator[str]:
    """Yield SQL that gives tables and columns the names that they had before a migration step of renames."""
    renames = re.findall(r"ALTER TABLE (\w+) RENAME (?:COLUMN (\w+) )?TO (\w+)", step)
    for table, column, name in reversed(renames):
        undone = f"{table} RENAME COLUMN {name} TO {column}" if column else f"{name} RENAME TO {table}"
        yield f"ALTER TABLE {undone}"


def archive_contents(folder: Path) -> dict[str, list[Row]]:
    """Return the contents of an archive and its index, without caches and without ids that depend on the order of writing."""
    with Store(str(folder)) as record:
        found = {"originals": sorted(_originals(record)), "index": sorted(_indexed(record), key=repr)}
        found["timelines"] = sorted(_timelines(record), key=repr)
        for name, columns in _tables(record.connection).items():
            if name in ("bookmarks", "facts", "dependencies", "pieces", "originals"):
                continue
            kept = ", ".join(_NAMED.get(column, column) for column in columns if column not in _NUMBERS)
            found[name] = sorted(record.rows(f"SELECT {kept} FROM {name}"), key=repr)  # noqa: S608 - fixed SQL
        return found


_NAMED = {
    "session": "(SELECT key FROM sessions WHERE id = session)",
    "source": "(SELECT path FROM sources WHERE id = source)",
}


def _originals(record: Store) -> Iterator[Row]:
    asked = "SELECT originals.id, path, is_latest, originals.size, originals.uid, checksum FROM originals JOIN sources ON sources.id = source"
    for number, *row in list(record.rows(asked)):
        yield (*row, record.originals.read(number))


_DOCS = """
SELECT sessions.key, entries.id, docs.id, docs.seq, docs.position, docs.regions
FROM docs JOIN entries ON entries.id = docs.session LEFT JOIN archive.sessions ON sessions.uid = entries.uid
"""


def _indexed(record: Store) -> Iterator[Row]:
    """Yield every document of the index with its texts and its indexed words."""
    index = Index(record, matches_project)
    for file in index.files:
        file.connection.execute("PRAGMA query_only = 0")
        words: dict[int, set[tuple[str, str]]] = {}
        for table in ("said", "output"):
            asked = f"CREATE VIRTUAL TABLE temp.{table}_words USING fts5vocab(main, {table}, instance)"
            file.connection.execute(asked)
            for term, doc in file.rows(f"SELECT term, doc FROM temp.{table}_words"):  # noqa: S608 - fixed SQL
                words.setdefault(doc, set()).add((table, term))
        for key, told, doc, seq, place, regions in list(file.rows(_DOCS)):
            texts = tuple(file.read_text(told, region) for region in regions.split())
            yield key, seq, place, texts, tuple(sorted(words.pop(doc, ())))
        yield from (("no document", *sorted(left)) for left in words.values())
        file.connection.close()


_STRETCHES = """
SELECT sessions.key, timelines.total, timelines.outline, timeline_chunks.seq, timeline_chunks.checksum
FROM timelines LEFT JOIN timeline_chunks ON timeline_chunks.session = timelines.session
LEFT JOIN entries ON entries.id = timelines.session
LEFT JOIN archive.sessions ON sessions.uid = entries.uid
"""


def _timelines(record: Store) -> Iterator[Row]:
    """Yield the timeline chunks of every session in the index."""
    for file in Index(record, matches_project).files:
        yield from file.rows(_STRETCHES)
        file.connection.close()


def table_differences(found: dict[str, list[Row]], expected: dict[str, list[Row]]) -> dict[str, Any]:
    """Return the rows that only one side has, at most two per side and table."""
    tables = {name: (Counter(found[name]), Counter(expected[name])) for name in expected}
    return {
        name: (list((one - other).elements())[:2], list((other - one).elements())[:2])
        for name, (one, other) in tables.items()
        if one != other
    }
