"""Write the scores in docs/redaction.md: `PYTHONPATH=tests python -m support.redaction_page`."""

from pathlib import Path

from retold.redaction.finding import KINDS
from support.detector_score import Score, detect_with_retold, score
from support.labelled_secrets import hand_written_samples, samples

PAGE = Path(__file__).resolve().parents[2] / "docs" / "redaction.md"
BEGIN, END = (
    "<!-- numbers: written by tests/support/redaction_page.py -->\n",
    "<!-- end of the numbers -->\n",
)


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
    return before + BEGIN + "\n" + score_tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
