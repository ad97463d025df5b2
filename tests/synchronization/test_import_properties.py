"""Archives that are merged: in any order, any number of times, and nothing is lost."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from retold.archive.index.documents import make_documents
from retold.archive.store import Store
from retold.model.session import Session
from retold.synchronization.user_changes import change_tags, set_title
from support.conversation_files import FORMS, ROOT, turns, write_file
from support.gemini_home import at, session_id
from support.merged_archives import (
    Machine,
    import_into,
    load_everything,
    load_sessions,
    load_tables,
    merge_archives,
)

pytestmark = pytest.mark.slow

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example takes a dozen syncs: to look for a smaller one would take minutes."""
WORDS = ("perigee", "solstice", "tithe", "vellum")
Talk = tuple[str, int, tuple[str, ...]]
"""In which form, under which number, and what is said in it."""
forms, numbers = st.sampled_from(sorted(FORMS)), st.integers(1, 3)
copies = st.tuples(forms, numbers, st.integers(1, 4).map(lambda count: WORDS[:count]))
"""Talks of which everybody has the beginning: longer here, shorter there."""
talks = st.tuples(forms, numbers, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(tuple))
"""Talks that may have gone on otherwise on each machine, in the same moment."""


def histories(kind: st.SearchStrategy[Talk]) -> st.SearchStrategy[list[list[Talk]]]:
    """Return what a machine writes before each of its syncs; a talk may be written again, longer or otherwise."""
    return st.lists(st.lists(kind, max_size=3), min_size=1, max_size=3)


hands = st.lists(st.sampled_from(("+night", "+paper", "")), max_size=2)


def write(home: Path, step: Sequence[Talk]) -> None:
    write_file(home / ".gemini/tmp/almanac/.project_root", ROOT)
    for form, number, words in step:
        path = FORMS[form].write(home, number, turns(*words))
        # As the CLI does: of two copies, the one that was updated last is what it resumes.
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace(
                '"lastUpdated":"2026-03-01T09:00:00', f'"lastUpdated":"2026-03-01T09:{len(words):02}:00'
            )
        )
    prompts = [
        {"sessionId": session_id(number + 7), "messageId": WORDS.index(words[0]), "type": "user",
         "message": f"{words[0]} {number}", "timestamp": at(10 * number + WORDS.index(words[0]))}
        for _, number, words in step
    ]  # fmt: skip
    write_file(home / ".gemini/tmp/almanac/logs.json", json.dumps(prompts))


@contextmanager
def archives(
    *machines: Sequence[Sequence[Talk]], tags: Sequence[str] = ()
) -> Iterator[tuple[Path, list[Path]]]:
    """Yield a folder, and in it the archives of machines whose homes have the same path."""
    with TemporaryDirectory() as folder:
        made = []
        for number, history in enumerate(machines):
            machine = Machine(Path(folder), f"archive-{number}")
            for step in history:
                machine.sync(lambda home, step=step: write(home, step))  # type: ignore[misc]
            machine.leave()
            with Store(str(machine.archive), can_write=True) as record:
                for key in [key for (key,) in record.rows("SELECT key FROM sessions ORDER BY key")][
                    number::2
                ]:
                    change_tags(record, key, [tag for tag in tags if tag])
            made.append(machine.archive)
        yield Path(folder), made


def said(*places: Path) -> set[str]:
    return {text for place in places for session in load_sessions(place) for text in texts_of(session)}


def texts_of(session: Session) -> set[str]:
    return {text for spoken in make_documents(session) for _, text in spoken.texts}


def outlines(archive: Path) -> list[Any]:
    """Return which conversations there are, and all that is said in each, whatever came first."""
    names = ("key", "native_id", "kind", "parent", "project", "tags", "started_at", "models")
    texts = {session.key: texts_of(session) for session in load_sessions(archive)}
    return [[{name: one[name] for name in names}, texts[one["key"]]] for one in load_everything(archive)]


@given(histories(copies), histories(copies), hands)
@settings(max_examples=25, phases=PHASES)
def test_two_archives_come_to_the_same_whichever_is_imported(
    ones: list[list[Talk]], others: list[list[Talk]], tags: list[str]
) -> None:
    with archives(ones, others, tags=tags) as (folder, (one, other)):
        first, second = (
            merge_archives(folder / "first", one, other),
            merge_archives(folder / "second", other, one),
        )
        assert load_everything(first) == load_everything(second)
        assert said(first) == said(one, other)


@given(histories(talks), histories(talks), hands)
@settings(max_examples=25, phases=PHASES)
def test_talks_that_went_apart_come_to_the_same_but_for_their_order(
    ones: list[list[Talk]], others: list[list[Talk]], tags: list[str]
) -> None:
    with archives(ones, others, tags=tags) as (folder, (one, other)):
        first, second = (
            merge_archives(folder / "first", one, other),
            merge_archives(folder / "second", other, one),
        )
        assert outlines(first) == outlines(second)
        assert said(first) == said(one, other)


@given(histories(talks), histories(talks))
@settings(max_examples=12, phases=PHASES)
def test_a_second_import_changes_nothing(ones: list[list[Talk]], others: list[list[Talk]]) -> None:
    with archives(ones, others) as (folder, (one, other)):
        both = merge_archives(folder / "both", one)
        first, sessions = import_into(both, other), len(load_sessions(other))
        assert first.new_sessions + first.merged + first.unchanged == sessions
        before = load_tables(both)
        again = import_into(both, other)
        assert (again.files, again.new_sessions, again.merged, again.unchanged) == (0, 0, 0, sessions)
        assert load_tables(both) == before
        import_into(both, other, "under-another-name")
        assert load_tables(both) == before


@given(histories(copies), histories(copies), histories(copies))
@settings(max_examples=8, phases=PHASES)
def test_three_archives_come_to_the_same_however_they_are_grouped(
    ones: list[list[Talk]], others: list[list[Talk]], thirds: list[list[Talk]]
) -> None:
    with archives(ones, others, thirds) as (folder, (one, other, third)):
        in_turn = merge_archives(folder / "in-turn", one, other, third, labels=("ben", "cy"))
        pair = merge_archives(folder / "pair", other, third, labels=("cy",))
        at_once = merge_archives(folder / "at-once", one, pair, labels=("ben",))
        assert load_everything(in_turn) == load_everything(at_once)
        assert said(in_turn) == said(one, other, third)


@given(histories(talks))
@settings(max_examples=10, phases=PHASES)
def test_an_own_copy_adds_nothing(history: list[list[Talk]]) -> None:
    with archives(history) as (folder, (one,)):
        again = merge_archives(folder / "again", one, one)
        assert load_tables(again) == load_tables(one)
        assert load_everything(again) == load_everything(one)


def test_titles_of_both_stay_where_they_were_given() -> None:
    step: list[Talk] = [("claude", 1, ("perigee",)), ("claude", 2, ("tithe",))]
    with archives([step], [step]) as (folder, (one, other)):
        for place, number, title in ((one, 1, "Ours"), (other, 1, "Theirs"), (other, 2, "Only theirs")):
            with Store(str(place), can_write=True) as record:
                set_title(record, FORMS["claude"].key(number), title)
        both = merge_archives(folder / "both", one)
        done = import_into(both, other)
        assert (done.titles, done.refused_titles) == (1, [("Ours", "Theirs")])
        assert {one.key: one.title for one in load_sessions(both) if one.kind == "main"} == {
            FORMS["claude"].key(1): "Ours",
            FORMS["claude"].key(2): "Only theirs",
        }
