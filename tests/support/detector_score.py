"""Scores a secret detector on the labelled set: recall, precision and every mistake."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from retold.redaction import Redactor
from support.labelled_secrets import Sample

Detector = Callable[[str], Iterable[tuple[int, int]]]
"""Returns the spans of secrets in a text."""


class Score(NamedTuple):
    """The labelled and the caught secrets of each kind, and the numbers of right and wrong alarms."""

    labels: Counter[str]
    caught: Counter[str]
    right: int
    wrong: int
    faults: tuple[str, ...]
    """Missed secrets and false alarms, as text for tuning."""

    @property
    def recall(self) -> float:
        return self.caught.total() / self.labels.total()

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)


def score(samples: Iterable[Sample], detector: Detector) -> Score:
    """Score a detector: a secret is caught if all of it is hidden; an alarm is right if it touches a secret."""
    labels, caught = Counter[str](), Counter[str]()
    right, wrong, faults = 0, 0, []
    for sample in samples:
        spans = list(detector(sample.text))
        hidden = {place for start, end in spans for place in range(start, end)}
        for label in sample.labels:
            labels[label.kind] += 1
            if hidden.issuperset(range(label.start, label.end)):
                caught[label.kind] += 1
            else:
                faults.append(f"missed {label.kind} in {sample.name}")
        for start, end in spans:
            is_right = any(start < label.end and label.start < end for label in sample.labels)
            right, wrong = right + is_right, wrong + (not is_right)
            if not is_right:
                faults.append(f"false alarm in {sample.name}: {sample.text[start:end]!r}")
    return Score(labels, caught, right, wrong, tuple(faults))


def detect_with_retold(text: str) -> Iterable[tuple[int, int]]:
    """Return the spans that an export of this text redacts."""
    redactor = Redactor()
    redactor.redact_text(text)
    return [(span.start, span.end) for span in redactor.spans(text)]
