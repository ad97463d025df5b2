"""What a sync is asked to do, and what came of it."""

from collections.abc import Mapping

import msgspec

from retold.ingest.coverage import CoverageCount
from retold.ingest.homes import Given
from retold.model.problem import Problem


class Order(msgspec.Struct, frozen=True):
    """What a sync is asked to do."""

    folder: str
    scope: str
    env: Mapping[str, str]
    given: Given = ()
    agents: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    is_kept_only: bool = False
    """Whether no home is looked at: what the archive keeps, and has not read, is read."""
    is_reindex: bool = False
    """Whether files are tried again that could not be read before."""


class SyncOutcome(msgspec.Struct, frozen=True):
    """What a sync did."""

    coverage: CoverageCount
    problems: tuple[Problem, ...]
    """What stood in the way of reading folders and files."""
