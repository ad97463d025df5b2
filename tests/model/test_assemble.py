"""A session's `extra` holds no large values: it stands in every row of a listing."""

from pathlib import Path

from retold.model.builder import LARGEST_EXTRA, limit_extra
from support.codex_home import meta_line, thread_id, turn, write
from support.person import Person


def test_large_values_are_left_out_and_named() -> None:
    fits = "x" * (LARGEST_EXTRA - 2)
    extra = {"fits": fits, "large": fits + "x", "huge": {"texts": ["é" * LARGEST_EXTRA]}, "wild": 2**70}
    found = limit_extra(extra)
    assert found == {
        "fits": fits,
        "wild": 2**70,
        "left_out": {"large": LARGEST_EXTRA + 1, "huge": 2 * LARGEST_EXTRA + len('{"texts":[""]}')},
    }
    assert limit_extra({"fits": fits}) == {"fits": fits}


def test_a_listing_does_not_carry_the_instructions_of_codex(tmp_path: Path) -> None:
    person, thread = Person(tmp_path / "ann"), thread_id(0, 1)
    instructions = {"text": "Be brief. " * 1400}
    lines = [meta_line(thread, 0, base_instructions=instructions), *turn(1, "First.", "Done.", 1)]
    write(person.folder / ".codex", thread, lines)
    person.sync()
    (row,) = person.run("list", "--json").objects
    assert row["extra"]["left_out"] == {"base_instructions": 14_011}
    assert row["extra"]["cli_version"] == "0.118.0"
    assert "Be brief" not in str(row)
