"""Turns by their numbers: the same wherever they are counted, since one is told to be asked for elsewhere."""

from bisect import bisect_right
from itertools import chain

from retold.archive.store import Store
from retold.insights.text import place_entries
from retold.sessions.slices import load_slices, load_turns, turn_starts


def test_turns_have_the_same_number_in_the_archive_in_an_outline_and_in_what_is_gleaned(
    demo_env: dict[str, str],
) -> None:
    forks = 0
    with Store(demo_env["RETOLD_HOME"]) as record:
        for session, key, kind in list(record.rows("SELECT id, key, kind FROM sessions")):
            begins, outline = turn_starts(record, session, key), load_turns(record, key)
            assert begins[1:] == [turn.seq for turn in outline][1:], key
            timeline = chain.from_iterable(part.session.timeline for part in load_slices(record, key))
            for one in place_entries(timeline):
                told = max(1, one.place.turn)  # nobody speaks in a subagent, which is one turn
                assert bisect_right(begins, one.place.seq) == told, key
            forks += kind == "fork"
    assert forks > 1  # they begin with what was said elsewhere, by either agent in its own way
