"""The strip beside a conversation."""

from retold.model.session import Fate
from retold.sessions.timelines import SessionTurn
from retold.web.charts import LENGTH, MOST, minimap_blocks, minimap_paths


def turn(place: int, fate: Fate = "live", errors: int = 0) -> SessionTurn:
    return SessionTurn(
        place, place + 1, f"Question {place}", fate, None, own=True, calls=errors, errors=errors
    )


def test_a_block_is_as_long_as_its_turn() -> None:
    found = list(minimap_blocks([turn(0), turn(10), turn(40)], 100))
    assert [(one.begin, one.length) for one in found] == [(0, 100), (100, 300), (400, 600)]


def test_what_became_of_a_turn_is_its_kind() -> None:
    turns = [turn(0), turn(1, "compacted"), turn(2, errors=1), turn(3, "rewound", 1), turn(4, "superseded")]
    assert [one.kind for one in minimap_blocks(turns, 5)] == ["turn", "compacted", "failed", "taken", "taken"]


def test_of_many_turns_several_are_one_block_and_the_worst_of_them_tells() -> None:
    turns = [turn(place, errors=place == 700) for place in range(1_000)]
    found = list(minimap_blocks(turns, 1_000))
    assert len(found) <= MOST
    assert sum(one.length for one in found) == LENGTH
    assert [one.begin for one in found if one.kind == "failed"] == [700]


def test_where_nothing_is_said_there_is_nothing() -> None:
    assert minimap_paths([], 0) == ()
    assert minimap_paths([], 7) == ()


def test_blocks_of_one_kind_are_one_path() -> None:
    drawn = dict(minimap_paths([turn(0), turn(10, "rewound"), turn(40)], 100))
    assert drawn == {"turn": "M0 0h10v100h-10zM0 400h10v600h-10z", "taken": "M0 100h10v300h-10z"}
