"""A person whose archive is exported as a dataset, and functions that read the dataset."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import dataset

from retold.model.tables import TABLES
from support.conversation_files import FORMS, turns
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person

Json = dict[str, Any]
KEY = "AIza" + "Sy" + "B1c2D3e4F5g6H7i8J9k0L1m2N3o4P5q6R"
"""A fake API key in Google's format."""
MAIL = "ann.tern@reed-and-heron.net"
DRAFT = re.compile(r"\.[0-9a-f]{16}$")
HIVE = dataset.partitioning(pa.schema([("agent", pa.string()), ("month", pa.string())]), flavor="hive")


def lake_home(folder: Path) -> GeminiHome:
    """Make a home with sessions of every agent, secrets, and a file that is not a session."""
    home = GeminiHome(folder)
    for number, name in enumerate(sorted(FORMS), 100):
        FORMS[name].write(folder, number, turns("heron", "otter"))
    said = [
        user("u1-with-a-long-enough-id", 1, f"My key is {KEY}, write to {MAIL}"),
        gemini("g1-with-a-long-enough-id", 2, f"I use {KEY}.", [call("read_file", {"file_path": "a.py"}, 2)]),
    ]
    home.lines("den", 1, 1, said, kind="main", root="/home/ternann/dev/almanac")
    home.lines(
        "den", 2, 20, [user("u2", 21, "Where do herons nest?"), gemini("g2", 22, "In reeds.")], kind="main"
    )
    home.write("tmp/den/chats/session-2026-03-01T09-55-0000000f.json", "this is not JSON, said ternann")
    return home


def person_with_archive(folder: Path) -> Person:
    """Return a person with the home of `lake_home` and an archive of it."""
    lake_home(folder)
    person = Person(folder)
    person.sync()
    return person


def export_dataset(person: Person, folder: Path, *options: str) -> str:
    """Export a dataset, by default of all sessions, and return stderr."""
    done = person.run("export", "--format", "parquet", "-o", str(folder), *(options or ("--all",)))
    assert done.code == 0, done
    return done.err


def query_dataset(folder: Path, query: str) -> list[Json]:
    """Return the rows of a DuckDB query over one view per table."""
    with duckdb.connect() as connection:
        for name in TABLES:
            files = f"read_parquet('{folder}/{name}/**/*.parquet', hive_partitioning = true)"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {files}")  # noqa: S608 - fixed SQL
        asked = connection.sql(query)
        assert asked is not None
        found: list[Json] = asked.to_arrow_table().to_pylist()
        return found


def dataset_rows(folder: Path) -> dict[str, list[str]]:
    """Return the rows of every table as JSON, sorted."""
    found: dict[str, list[str]] = {}
    for name in TABLES:
        files = sorted(map(str, (folder / name).rglob("part-*.parquet")))
        if not files:
            found[name] = []
            continue
        table = dataset.dataset(
            files, format="parquet", partitioning=HIVE, partition_base_dir=str(folder / name)
        ).to_table()
        found[name] = sorted(json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())
    return found


def table_objects(folder: Path, table: str) -> list[Json]:
    """Return the rows of one table as objects."""
    return [json.loads(row) for row in dataset_rows(folder)[table]]


def file_states(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mtime and the contents of every file in a dataset."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != ".retold.lock"]
    return {str(file.relative_to(folder)): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def all_bytes(folder: Path) -> bytes:
    """Return everything in a dataset as bytes: paths, the manifest, and the values of every table."""
    paths = "\n".join(str(file.relative_to(folder)) for file in folder.rglob("*"))
    told = json.dumps(dataset_rows(folder), ensure_ascii=False)
    return (paths + told).encode() + (folder / "retold.json").read_bytes()
