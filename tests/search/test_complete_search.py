"""A search finds every conversation that matches, in one order, however many files the index has."""

from itertools import islice
from typing import NamedTuple
from unittest.mock import patch

import pytest

from retold.archive.index import writer  # noqa: F401 - all that know how many files there are
from retold.archive.index.reader import Index
from retold.archive.store import Store
from retold.projects.matching import matches_project
from retold.search import ranking
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.query import parse_query
from retold.synchronization import user_changes, workers  # noqa: F401
from retold.synchronization.update import SyncOptions, update
from support.many_sessions import Sought, index_files, meant, queries, write_talks

pytestmark = pytest.mark.slow

SESSIONS, QUERIES = 2_000, 200
FILES = (1, 4)
Answer = list[tuple[str, float]]
"""The keys of the conversations that were found, in their order, with their scores."""


class Archive(NamedTuple):
    """What each number of index files answers to each query, and what it should answer."""

    expected: dict[str, set[str]]
    answers: dict[int, dict[str, Answer]]
    first: dict[int, dict[str, Answer]]
    """The first ten, where no more are asked for."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("many")
    talks = write_talks(folder / "ann", SESSIONS)
    answers, first = {}, {}
    for number in FILES:  # one sync, then a new index for each further number of files
        with index_files(number):
            task = SyncOptions(
                str(folder / "retold"), {"HOME": str(folder / "ann")}, reindex=number > FILES[0]
            )
            update(task, lambda: None, lambda _done, _size: None)
            with Store(str(folder / "retold")) as record:
                index = Index(record, matches_project)
                keys = dict(record.rows("SELECT id, key FROM sessions"))
                assert all(next(file.rows("SELECT count(*) FROM entries"))[0] for file in index.files)
                answers[number] = {one.typed: answer(record, index, keys, one) for one in queries(QUERIES)}
                # Few documents are scored one by one, so that most queries need the limits of the others.
                with (
                    patch.object(ranking, "EXACT", 300),
                    patch.object(ranking, "_LEAST_BEST", 40),
                ):
                    first[number] = {
                        one.typed: answer(record, index, keys, one, 10) for one in queries(QUERIES)
                    }
    return Archive({one.typed: meant(talks, one) for one in queries(QUERIES)}, answers, first)


def answer(
    record: Store, index: Index, keys: dict[int, str], sought: Sought, limit: int | None = None
) -> Answer:
    query = parse_query(sought.typed)
    search = Search(record, query, Filters(query.fields), index)
    return [(keys[match.session], match.score) for match in islice(search.find_matches(limit), limit)]


@pytest.mark.parametrize("number", FILES)
def test_every_conversation_that_matches_is_found(archive: Archive, number: int) -> None:
    for typed, expected in archive.expected.items():
        found = [key for key, _ in archive.answers[number][typed]]
        assert len(found) == len(set(found)), typed
        assert set(found) == expected, (typed, sorted(expected ^ set(found))[:3])


def test_the_queries_are_of_all_sizes(archive: Archive) -> None:
    sizes = sorted(map(len, archive.expected.values()))
    assert sizes[0] < 10
    assert sizes[QUERIES // 2] > 50
    assert sizes[-1] > SESSIONS // 2


@pytest.mark.parametrize("number", FILES[1:])
def test_order_and_scores_do_not_depend_on_the_files_of_the_index(archive: Archive, number: int) -> None:
    for typed, expected in archive.answers[FILES[0]].items():
        assert archive.answers[number][typed] == expected, typed


@pytest.mark.parametrize("number", FILES)
def test_the_first_are_those_of_the_whole_answer(archive: Archive, number: int) -> None:
    for typed, first in archive.first[number].items():
        assert first == archive.answers[number][typed][:10], typed


def test_scores_fall_from_one(archive: Archive) -> None:
    for answers in archive.answers.values():
        for typed, found in answers.items():
            scores = [score for _, score in found]
            assert scores == sorted(scores, reverse=True), typed
            assert scores[:1] in ([], [1.0]), typed
            assert all(score > 0 for score in scores), typed
