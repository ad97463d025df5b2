"""What there is to read in files that Spark lists, without their content."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from retold.agents.protocol import Source
from retold.agents.registry import AGENTS
from retold.lake.held import ListedDisk, ListedFile
from retold.lake.job import TableJob, TablePlan, homes_in, planned, see_that_there_are_homes
from retold.lake.places import labelled
from retold.lake.remote import shown_path
from retold.lake.spark.hadoop import Hadoop
from retold.lake.told import UnreadFile
from retold.model.problem import problem

_LOCAL = re.compile(r"file:/+")
_ROUNDS = 5
"""How often what one file says may lead to others: a registry to markers, and these to nothing."""
_MILLION = 1_000_000
Folders = Sequence[tuple[str | None, Path]]
"""Folders that may be homes, each with its label."""


def path_of(address: str) -> str:
    """Return an address as a path: this machine's without `file:`, others with one slash behind their scheme."""
    return shown_path(_LOCAL.sub("/", address))


class Listing:
    """The files of a DataFrame; what has to be known of a few, the driver itself reads."""

    def __init__(self, files: DataFrame) -> None:
        """Take what `spark.read.format("binaryFile")` loads; no content is read."""
        columns = ("path", "length", f.unix_millis("modificationTime").alias("modified"))
        rows = files.select(*columns).collect()
        self.addresses: dict[str, str] = {path_of(row.path): row.path for row in rows}
        self.files = {path_of(row.path): ListedFile(row.length, row.modified * _MILLION) for row in rows}
        self._read: dict[str, ListedFile] = {}
        self._unread: dict[str, str] = {}
        """Why files that are there could not be read."""
        self._asked: set[str] = set()
        self._hadoop = Hadoop(files.sparkSession)
        self._slashes = "//" if any("://" in row.path for row in rows) else "/"

    @property
    def hidden(self) -> dict[str, ListedFile]:
        """The files whose names begin with a dot, of those that were asked for: no reader of Spark lists them."""
        return {path: held for path, held in self._read.items() if path.rpartition("/")[2].startswith(".")}

    def plan(self, homes: Iterable[str], agents: Sequence[str], label: str | None) -> TablePlan:
        """Return what there is to read; again, as long as a file has to be opened for it that was not yet."""
        patterns = [path_of(home) if ":" in home else os.path.abspath(home) for home in homes]
        for _ in range(_ROUNDS):
            disk = ListedDisk({**self.files, **self._read})
            folders = labelled(patterns, disk, label)
            plan = planned(folders, agents, disk, disk.size_of)
            wanted = disk.wanted - self._asked
            if not wanted:
                break
            self._ask(wanted)
        see_that_there_are_homes(plan, patterns)
        told = [one for one in plan.refused if one.problem.path not in self._unread]
        told += [unread(path, why, agents, folders, disk) for path, why in sorted(self._unread.items())]
        return msgspec.structs.replace(plan, refused=told)

    def _ask(self, wanted: Collection[str]) -> None:
        """Let the driver read files, as far as they are there."""
        self._asked |= set(wanted)
        paths = {self._address(path): path for path in wanted}
        for address, held in self._hadoop.files(paths).items():
            if isinstance(held, ListedFile):
                self._read[paths[address]] = held
            else:
                self._unread[paths[address]] = held

    def _address(self, path: str) -> str:
        if path in self.addresses:
            return self.addresses[path]
        scheme, colon, rest = path.partition(":/")
        return f"{scheme}:{self._slashes}{rest}" if colon and "/" not in scheme else f"file:{path}"


def unread(path: str, why: str, agents: Sequence[str], folders: Folders, disk: ListedDisk) -> UnreadFile:
    """Return why a file is not read, with the agent and the home whose it is."""
    homes = ((agent, home) for agent in agents for home in homes_in(AGENTS[agent], folders, disk, []))
    own = ((agent, home.label) for agent, home in homes if Path(path).is_relative_to(home.path))
    agent, label = next(own, (agents[0], None))
    return UnreadFile(agent, label, problem("unreadable-file", why, path))


def without_large(plan: TablePlan, largest: int, files: Mapping[str, ListedFile]) -> TablePlan:
    """Return a plan without the files that are larger than Spark can hand on, which are told as problems."""
    refused = list(plan.refused)
    jobs: list[TableJob] = []
    for job in plan.jobs:
        large = [source for source in job.sources if files[str(source.path)].size > largest]
        refused += [_too_large(job.agent, source, largest) for source in large]
        kept = tuple(source for source in job.sources if source not in large)
        if kept or job.said:
            jobs.append(msgspec.structs.replace(job, sources=kept))
    return TablePlan(jobs, plan.clues, refused)


def _too_large(agent: str, source: Source, largest: int) -> UnreadFile:
    message = f"larger than {largest:,} bytes, which is what Spark was asked to hand on at most"
    return UnreadFile(agent, source.label, problem("unreadable-file", message, source.shown))
