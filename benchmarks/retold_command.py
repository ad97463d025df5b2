"""The `retold` command with an archive that the benchmarks fill and remove."""

import shutil
from pathlib import Path

from corpora import CACHE, Corpus, size_of
from processes import PYTHON, RETOLD, ProcessResult, environment, peak_pss, run

FOUND, NOTHING = 0, 1
WITH_WORKERS = """
import os, sys
os.cpu_count = lambda: int(sys.argv[1])
from retold.cli.main import main
sys.exit(main(["sync"]))
"""


class Retold:
    """The command, with a home and an archive."""

    def __init__(self, home: Path, name: str) -> None:
        self.archive = CACHE / "work" / f"retold-{name}"
        self.env = environment(home, RETOLD_HOME=str(self.archive))

    @property
    def size(self) -> int:
        """The size of archive and index in bytes."""
        return size_of(self.archive)

    def remove_archive(self) -> None:
        """Remove the archive."""
        shutil.rmtree(self.archive, ignore_errors=True)

    def run(self, *arguments: str) -> ProcessResult:
        """Run a command."""
        return run([RETOLD, *arguments], self.env)

    def sync(self) -> ProcessResult:
        """Bring the archive up to date."""
        return self.run("sync")

    def sync_with_workers(self, workers: int) -> ProcessResult:
        """Bring the archive up to date as on a machine with some cores."""
        return run([PYTHON, "-c", WITH_WORKERS, str(workers)], self.env)

    def peak_of_first_sync(self) -> float:
        """Fill the archive; return the peak memory of all processes in MB."""
        self.remove_archive()
        return peak_pss([RETOLD, "sync"], self.env)

    def search(self, query: str, *, is_substring: bool = False) -> ProcessResult:
        """Search the archive."""
        how = ("--substring",) if is_substring else ()
        return run([RETOLD, "search", *how, "--json", "--", query], self.env, codes=(FOUND, NOTHING))


_FRESH: set[str] = set()


def sync_corpus(corpus: Corpus) -> Retold:
    """Return retold with an archive of a corpus; in each run the archive is built once, because the code may have changed."""
    retold = Retold(corpus.home, corpus.name)
    if corpus.name not in _FRESH:
        retold.remove_archive()
        _FRESH.add(corpus.name)
    retold.sync()
    return retold
