"""What was taken out of an export, told in a sentence and as JSON lines."""

from collections import Counter
from collections.abc import Iterator, Sequence

from retold.model.serialization import encoded
from retold.redaction.redactor import Removal

_SHOWN = 6


def report_sentence(report: Sequence[Removal]) -> str:
    """Return how many secrets there were, and of which kinds, the most frequent first."""
    if not report:
        return "no secrets were found; look before you pass it on all the same"
    kinds = Counter(kind for kind, _ in {(one.kind, one.placeholder) for one in report})
    told = [f"{count:,} {kind}" for kind, count in sorted(kinds.items(), key=lambda one: (-one[1], one[0]))]
    rest = len(told) - _SHOWN
    shown = ", ".join([*told[:_SHOWN], *([f"{rest} more kinds"] if rest > 0 else [])])
    places = sum(one.count for one in report)
    return f"taken out: {shown}, in {places:,} place{'' if places == 1 else 's'}; look before you pass it on all the same"


def report_lines(report: Sequence[Removal]) -> Iterator[bytes]:
    """Yield each as a JSON object: its kind, what stands there now, how often, and where."""
    for one in report:
        place = one.place
        tree = {
            "kind": one.kind,
            "placeholder": one.placeholder,
            "count": one.count,
            "session": place.session,
            "entry": place.entry,
            "field": place.field,
        }
        yield encoded(tree) + b"\n"
