"""Write the scores in docs/redaction.md: `PYTHONPATH=tests python -m support.redaction_page`."""

from pathlib import Path

from retold.redaction.secrets import KINDS
from support.blind_secrets import Blind, BlindScore, blind_score
from support.detector_score import Score, detect_with_retold, score
from support.labelled_secrets import hand_written_samples, samples

PAGE = Path(__file__).resolve().parents[2] / "docs" / "redaction.md"
BEGIN, END = (
    "<!-- numbers: written by tests/support/redaction_page.py -->\n",
    "<!-- end of the numbers -->\n",
)
BLIND_BEGIN, BLIND_END = (
    "<!-- blind numbers: written by tests/support/redaction_page.py -->\n",
    "<!-- end of the blind numbers -->\n",
)
BLIND: tuple[Blind, ...] = ("blind", "blind-2", "blind-3", "blind-4", "blind-5")


def score_tables() -> str:
    """Return two Markdown tables: the scores of each kind, and the totals."""
    seen, unseen = score(samples("seen"), detect_with_retold), score(samples("unseen"), detect_with_retold)
    rows = [
        f"| `{kind}` | {told} | {_found(seen, kind)} | {_found(unseen, kind)} |"
        for kind, told in sorted(KINDS.items())
    ]
    sums = [
        _sums("seen half", seen),
        _sums("unseen half", unseen),
        _sums("seen half, without the contexts", score(hand_written_samples("seen"), detect_with_retold)),
        _sums("unseen half, without the contexts", score(hand_written_samples("unseen"), detect_with_retold)),
    ]
    return "\n".join(
        [
            "| kind | what it is | found, seen half | found, unseen half |",
            "|---|---|---|---|",
            *rows,
            "",
            "| | secrets | found | recall | alarms | false | precision |",
            "|---|---|---|---|---|---|---|",
            *sums,
            "",
        ]
    )


def blind_tables() -> str:
    """Return a Markdown table of the scores on the blind sets, and lists of what is missed and taken for a secret."""
    scores = {blind: blind_score(blind, detect_with_retold) for blind in BLIND}
    rows = [
        f"| {name} | {one.secrets} | {one.kinds} | {one.caught} | {one.recall:.3f}"
        f" | {one.harmless} | {one.clean} | {one.left_alone:.3f} |"
        for name, one in scores.items()
    ]
    return "\n".join(
        [
            "| set | secrets | kinds | found | recall | harmless texts | unchanged | share |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            *(line for name, one in scores.items() for line in _faults(name, one)),
        ]
    )


def _faults(name: Blind, one: BlindScore) -> list[str]:
    return [
        f"- Missed in `{name}`: {'; '.join(one.misses) or 'nothing'}.",
        f"- Taken for a secret in `{name}`: {'; '.join(one.false_alarms) or 'nothing'}.",
    ]


def _found(counted: Score, kind: str) -> str:
    return f"{counted.caught[kind]} of {counted.labels[kind]}"


def _sums(half: str, counted: Score) -> str:
    alarms = counted.right + counted.wrong
    cells = (
        half,
        counted.labels.total(),
        counted.caught.total(),
        f"{counted.recall:.3f}",
        alarms,
        counted.wrong,
    )
    return "| " + " | ".join(map(str, cells)) + f" | {counted.precision:.3f} |"


def updated_page(text: str) -> str:
    """Return the page with the current scores."""
    before, _, rest = text.partition(BEGIN)
    page = before + BEGIN + "\n" + score_tables() + "\n" + END + rest.partition(END)[2]
    before, _, rest = page.partition(BLIND_BEGIN)
    return before + BLIND_BEGIN + "\n" + blind_tables() + "\n" + BLIND_END + rest.partition(BLIND_END)[2]


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
