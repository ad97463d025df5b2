"""The dataset tables of some homes from two sources: an archive, and the files alone."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from retold.archive.store import Store
from retold.lake.batches import load_prices, read_sessions
from retold.lake.dataset_items import make_row_source
from retold.lake.jobs import SplitConversation, join_split, plan_jobs
from retold.lake.session_rows import RowSource, UnreadFile, table_rows
from retold.model.problem import Problem
from retold.model.tables import TABLES
from retold.projects.resolver import ProjectResolver
from retold.sessions.load import LoadedSession, load_session
from support.conversation_files import FORMS, turns
from support.home_ledgers import copy_into_home, homes_in
from support.synced_archive import Given, sync_archive

Row = dict[str, Any]
DEPENDENT_COLUMNS = frozenset(
    ("own", "kind", "parent", "child", "requests", "cost_usd", "estimated", "session")
)
"""Columns that depend on other sessions: who owns an entry, the sums over own requests, and the keys."""


def tables_from_archive(folder: Path, given: Given) -> dict[str, list[Row]]:
    """Return all tables from an archive of labelled homes."""
    found = sync_archive(folder, {"HOME": str(folder / "nobody")}, given)
    with Store(found.folder) as record:
        keys = list(record.rows("SELECT id, uid, key FROM sessions"))
        sessions: list[RowSource | UnreadFile] = [_told(record, *one) for one in keys]
        asked = "SELECT agent, label, refusal FROM sources WHERE refusal IS NOT NULL"
        sessions += [
            UnreadFile(agent, label, msgspec.json.decode(refusal, type=Problem))
            for agent, label, refusal in record.rows(asked)
        ]
    return rows_by_table(sessions)


def _told(record: Store, number: int, name: int, key: str) -> RowSource:
    session = load_session(record, key)
    assert session is not None
    found = make_row_source(record, LoadedSession(number, name, session), None)
    assert isinstance(found, RowSource)
    return found


def tables_from_files(given: Given, several: Sequence[SplitConversation] = ()) -> dict[str, list[Row]]:
    """Return all tables from jobs that run one after the other; one job reads each conversation in `several`."""
    plan = join_split(plan_jobs(given), several)
    atlas = ProjectResolver(plan.clues, {}, os.getcwd())
    for _ in range(2):  # the second pass knows the roots that other sessions proved in the first
        found = [one for job in plan.jobs for one in read_sessions(job, atlas, load_prices().cost)]
    return rows_by_table([*plan.unread, *found])


def split_conversations(sessions: Iterable[Row]) -> list[SplitConversation]:
    """Return the conversations that several jobs read."""
    paths: dict[tuple[str, str], list[list[str]]] = {}
    for row in sessions:
        paths.setdefault((row["agent"], row["conversation"]), []).append(
            [one["path"] for one in row["sources"]]
        )
    return [SplitConversation(*name, tuple(chain(*held))) for name, held in paths.items() if len(held) > 1]


def rows_by_table(found: Iterable[RowSource | UnreadFile]) -> dict[str, list[Row]]:
    """Return the rows of all sessions, by table."""
    held = list(found)
    return {name: [_row(name, row) for one in held for row in table_rows(name, one)] for name in TABLES}


def _row(table: str, values: Iterable[object]) -> Row:
    return dict(zip(TABLES[table].names, values, strict=True))


def resolve_requests(requests: Iterable[Row]) -> list[Row]:
    """Return each request once, from the earliest session that has it."""
    earliest: dict[object, Row] = {}
    for row in requests:
        known = earliest.setdefault(row["request"], row)
        if _order(row) < _order(known):
            earliest[row["request"]] = row
    return list(earliest.values())


def _order(row: Row) -> tuple[str, str, str]:
    return str(row["session_started_at"]), str(row["session_ended_at"]), row["session"]


def row_counts(rows: Iterable[Row], without: Collection[str]) -> Counter[str]:
    """Count equal rows, without some of their columns."""
    return Counter(repr({name: value for name, value in row.items() if name not in without}) for row in rows)


def two_homes(folder: Path) -> Path:
    """Make the homes of two people in a folder, with conversations in every form."""
    for place, form in enumerate(FORMS, start=1):
        # The ids differ in their first digits, because files are grouped by these.
        FORMS[form].write(folder / "ann", place << 28, turns("heron", "otter"))
        FORMS[form].write(folder / "bob", place << 28 | 1 << 24, turns("vole"))
    return folder


def real_cli_homes(shared: Path) -> list[tuple[str, Path]]:
    """Return the homes that the real Gemini CLI wrote, each with a label."""
    homes = homes_in(shared / "corpus" / "gemini-cli", ".gemini")
    return [(f"home-{number:02}", home) for number, home in enumerate(homes)]


def generated_homes(shared: Path, folder: Path) -> list[tuple[str, Path]]:
    """Generate homes with known totals in every form, and return them with their labels."""
    forms = ("gemini", "gemini-jsonl", "claude", "codex")
    asked = {
        "true": ("make_home.py",),
        "priced": ("make_priced_corpus.py", "30", "20"),
        **{form: ("make_big_corpus.py", "40", "4", "--fmt", form) for form in forms},
    }
    for label, (script, *options) in asked.items():
        command: list[str | Path] = [sys.executable, shared / "truth" / script, folder / label, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [(label, folder / label) for label in asked]


def public_homes(shared: Path, folder: Path) -> list[tuple[str, Path]]:
    """Return published session files, copied into one home per repository."""
    found = []
    for repository in sorted((shared / "corpus" / "public").glob("*/*")):
        files = sorted(file for file in repository.rglob("*") if file.suffix in (".json", ".jsonl"))
        label = f"{repository.parent.name}-{repository.name}"
        found.append((label, copy_into_home(files, folder / label)))
    return found


def token_totals(requests: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the summed tokens of requests, by column."""
    held = list(requests)
    names = [name for name in TABLES["requests"].names if name.endswith("_tokens")]
    return {name: sum(row[name] or 0 for row in held) for name in names}
