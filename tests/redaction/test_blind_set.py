"""Texts that were complete before anybody measured them: large enough, invented, the same in every run."""

import pytest

from support.blind_secrets import Blind, blind_samples, blind_score
from support.detector_score import detect_with_retold

SLOT_SIGNS = set("«»\u2039\u203a␛⍽")
LEAST = {
    "blind": (160, 70, 160),
    "blind-2": (60, 30, 60),
    "blind-3": (60, 30, 20),
    "blind-4": (30, 7, 30),
    "blind-5": (100, 20, 80),
}
"""The fewest secrets, kinds and harmless texts of each set."""


@pytest.mark.parametrize("blind", ["blind", "blind-2", "blind-3", "blind-4", "blind-5"])
def test_a_blind_set_is_large_enough(blind: Blind) -> None:
    secrets = [secret for sample in blind_samples(blind, "secrets") for secret in sample.secrets]
    harmless = blind_samples(blind, "harmless")
    least_secrets, least_kinds, least_harmless = LEAST[blind]
    assert len(secrets) >= least_secrets
    assert len({secret.kind for secret in secrets}) >= least_kinds
    assert len(harmless) >= least_harmless
    assert not any(sample.secrets for sample in harmless)


@pytest.mark.parametrize("blind", ["blind", "blind-2", "blind-3", "blind-4", "blind-5"])
def test_every_slot_is_filled_and_every_piece_is_in_its_text(blind: Blind) -> None:
    for part in ("secrets", "harmless"):
        for sample in blind_samples(blind, part):
            assert not set(sample.text) & SLOT_SIGNS, sample.title
            for secret in sample.secrets:
                assert all(0 <= start < end <= len(sample.text) for start, end in secret.pieces)


def test_the_same_texts_are_made_in_every_run() -> None:
    first = blind_samples("blind", "secrets")
    blind_samples.cache_clear()
    assert blind_samples("blind", "secrets") == first


@pytest.mark.parametrize(
    ("blind", "recall", "left_alone"),
    [
        ("blind", 0.93, 0.98),
        ("blind-2", 0.93, 0.98),
        ("blind-3", 0.93, 0.98),
        ("blind-4", 0.93, 0.98),
        ("blind-5", 0.93, 0.98),
    ],
)
def test_most_secrets_are_found_and_most_harmless_texts_stay(
    blind: Blind, recall: float, left_alone: float
) -> None:
    measured = blind_score(blind, detect_with_retold)
    assert measured.recall >= recall, measured.misses
    assert measured.left_alone >= left_alone, measured.false_alarms
