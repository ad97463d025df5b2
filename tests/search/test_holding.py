"""Conversations that one process tells another."""

import msgspec

from retold.search.results import MessageHit, SearchResult
from retold.search.scan_job import ResultItem, to_result_item


def test_what_is_told_comes_out_as_it_was_but_for_halves_of_characters() -> None:
    hit = MessageHit(("u1", "user", "rewound", None), None, ("half \ud800 an owl", [(10, 13)]), 7)
    row = ("gemini:one", "Owls", None, None, None, "none", None)
    told = msgspec.json.encode(to_result_item(SearchResult(3, row, 1.0, [hit])))
    (place,) = msgspec.json.decode(told, type=ResultItem).hits
    assert place.snippet == "half ? an owl"
    assert (place.seq, place.fate, place.matches) == (7, "rewound", ((10, 13),))
