"""What is asked of the data source: its options, understood or refused."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from retold.agents import NAMES
from retold.lake.spread import Spread, decoded
from retold.model.tables import TABLES

MOST_BYTES = 64 << 20
"""Of the files that one task reads, where nobody says otherwise."""


NAMED = ("table", "columns", "agents", "label", "together", "maxPartitionBytes")
KNOWN = frozenset(name.lower() for name in (*NAMED, "path", "paths"))
"""Spark itself makes options of what `load` is given."""


class Options(msgspec.Struct, frozen=True):
    """A table, some of its columns, and the homes to read."""

    table: str
    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()
    agents: tuple[str, ...] = NAMES
    label: str | None = None
    most: int = MOST_BYTES
    together: tuple[Spread, ...] = ()


def parse_options(given: Mapping[str, str]) -> Options:
    """Understand options as Spark gives them; raises ValueError for those that mean nothing."""
    if unknown := [name for name in given if name.lower() not in KNOWN]:
        raise ValueError(f"no option {unknown[0]!r}: there are {', '.join(NAMED)}")
    table = parse_table(given.get("table"))
    agents = parse_agents(_listed(given.get("agents")) or NAMES)
    return Options(
        table,
        parse_columns(table, _listed(given.get("columns"))),
        _paths(given),
        agents,
        given.get("label"),
        parse_size(given.get("maxPartitionBytes")),
        decoded(given.get("together") or "[]"),
    )


def parse_agents(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of agents; raises ValueError for others."""
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(f"no agent {unknown[0]!r}: there are {', '.join(NAMES)}")
    return tuple(names)


def parse_table(name: str | None) -> str:
    """Return the name of a table; raises ValueError for any other."""
    if name is None or name not in TABLES:
        asked = "the option `table` is missing" if name is None else f"no table {name!r}"
        raise ValueError(f"{asked}: there are {', '.join(TABLES)}")
    return name


def parse_columns(table: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return columns of a table, or all of them; raises ValueError for others."""
    known = TABLES[table].names
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no column {unknown[0]!r} in {table}: there are {', '.join(known)}")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"the column {twice[0]!r} is named twice")
    return tuple(names or known)


def parse_size(text: str | None) -> int:
    """Return a number of bytes, which may be written as `64m`; raises ValueError for anything else."""
    if text is None:
        return MOST_BYTES
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "b")
    shift = {"b": 0, "k": 10, "m": 20, "g": 30}.get(unit)
    if shift is None or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"maxPartitionBytes is {text!r}: a number of bytes, or one such as 64m")
    return int(number) << shift


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    several = given.get("paths") or ""
    # Spark itself hands on several paths as JSON.
    listed = json.loads(several) if several.startswith("[") else _listed(several)
    path = given.get("path") or ""
    # Spark hands on a single path as it is, and a folder may have a comma in its name.
    paths = (*([path] if os.path.isdir(path) else _listed(path)), *listed)
    if not paths:
        raise ValueError("no path: .load('homes/*') names the folders of homes")
    return paths


def _listed(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]
