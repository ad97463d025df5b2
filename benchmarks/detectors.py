"""Compare our detector of secrets with other installed ones, on the seen half of the labelled set.

    pip install detect-secrets
    benchmarks/detectors.py

Not part of `make bench`. Decision 28 has the results.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.detector_score import detect_with_retold, score
from support.labelled_secrets import hand_written_samples, samples

Spans = Iterable[tuple[int, int]]


def detect_with_detect_secrets(text: str) -> Spans:
    """Return what detect-secrets finds in a file with this text, with all its plugins."""
    scan_file = import_module("detect_secrets.core.scan").scan_file
    settings = import_module("detect_secrets.settings").default_settings
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file, settings():
        file.write(text)
        file.flush()
        found = [(secret.line_number, secret.secret_value) for secret in scan_file(file.name)]
    return _spans(text, found)


def detect_by_line(text: str) -> Spans:
    """Return what detect-secrets finds line by line, which reports more secrets."""
    scan_line = import_module("detect_secrets.core.scan").scan_line
    settings = import_module("detect_secrets.settings").default_settings
    with settings():
        lines = enumerate(text.splitlines(), 1)
        found = [(number, secret.secret_value) for number, line in lines for secret in scan_line(line)]
    return _spans(text, found)


def _spans(text: str, found: Iterable[tuple[int, str | None]]) -> Iterator[tuple[int, int]]:
    lines = text.splitlines(keepends=True)
    for number, value in set(found):
        start = lines[number - 1].find(value) if value else -1
        if value and start >= 0:
            before = sum(map(len, lines[: number - 1]))
            yield before + start, before + start + len(value)


DETECTORS: dict[str, tuple[str, Callable[[str], Spans]]] = {
    "retold": ("retold", detect_with_retold),
    "detect-secrets": ("detect_secrets", detect_with_detect_secrets),
    "detect-secrets, line by line": ("detect_secrets", detect_by_line),
}


def main() -> None:
    """Print a line for each detector that is installed."""
    size = sum(len(sample.text) for sample in samples("seen")) / 1e6
    for name, (module, detector) in DETECTORS.items():
        if not find_spec(module):
            print(f"{name}: not installed")
            continue
        start = time.process_time()
        all_of_it = score(samples("seen"), detector)
        speed = size / (time.process_time() - start)
        alone = score(hand_written_samples("seen"), detector)
        print(
            f"{name}: recall {all_of_it.recall:.3f}, precision {all_of_it.precision:.3f}; without the contexts "
            f"{alone.recall:.3f}, {alone.precision:.3f}; {speed:.3f} MB/s"
        )


if __name__ == "__main__":
    main()
