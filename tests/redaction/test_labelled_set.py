"""The labelled set itself: large enough, invented, the same in every run, and told apart in two halves."""

from collections import Counter

import pytest

from support.fake_secrets import SHAPES, SPEAKING
from support.labelled_secrets import Half, hand_written_samples, samples

LEAST_KINDS = 20


@pytest.mark.parametrize("half", ["seen", "unseen"])
def test_each_half_holds_every_kind_and_enough_that_is_harmless(half: Half) -> None:
    kinds = Counter(label.kind for sample in samples(half) for label in sample.labels)
    harmless = [sample for sample in samples(half) if not sample.labels]
    assert len(kinds) >= LEAST_KINDS
    assert set(SPEAKING) <= set(kinds)
    assert min(kinds.values()) >= 2, kinds
    assert len(harmless) >= 40


def test_the_halves_have_no_text_and_no_context_in_common() -> None:
    seen, unseen = samples("seen"), samples("unseen")
    assert not {sample.name for sample in seen} & {sample.name for sample in unseen}
    assert not {label.value for sample in seen for label in sample.labels if len(label.value) > 20} & {
        label.value for sample in unseen for label in sample.labels
    }
    assert 0.8 < len(seen) / len(unseen) < 1.25
    assert 0.8 < len(hand_written_samples("seen")) / len(hand_written_samples("unseen")) < 1.25


@pytest.mark.parametrize("half", ["seen", "unseen"])
def test_labels_stand_where_they_say(half: Half) -> None:
    for sample in samples(half):
        assert "«" not in sample.text, sample.name
        for label in sample.labels:
            assert label.value, sample.name
            assert 0 <= label.start < label.end <= len(sample.text)


def test_the_same_secrets_are_made_in_every_run() -> None:
    first = samples("seen")
    samples.cache_clear()
    assert samples("seen") == first
    assert len(SHAPES) >= 25
