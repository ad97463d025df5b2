"""Rows of what went wrong while reading."""

from collections.abc import Iterator

from retold.lake.told import RowSource, UnreadFile
from retold.model.problem import Problem


def problem_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each problem of a session."""
    return map(_row, told.session.problems)


def refused(told: UnreadFile) -> Iterator[tuple[object, ...]]:
    """Yield why a file is no session."""
    yield _row(told.problem)


def _row(problem: Problem) -> tuple[object, ...]:
    return problem.code, problem.severity, problem.message, problem.path, problem.line, problem.pointer
