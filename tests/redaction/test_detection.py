"""Detection on the labelled set. The seen half was there for tuning; the unseen one says how well it went."""

from labelled_set import samples
from scoring import by_retold, score

LEAST_RECALL, LEAST_PRECISION = 0.98, 0.95


def test_all_of_the_seen_half_is_found_and_nothing_else() -> None:
    seen = score(samples("seen"), by_retold)
    assert not seen.faults
