"""The `retold` command with an archive that the benchmarks fill and remove."""

import shutil
from pathlib import Path

from corpora import CACHE, Corpus, PricedCorpus, size_of
from processes import RETOLD, ProcessResult, environment, peak_pss, run

FOUND, NOTHING = 0, 1


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

    def sync(self) -> ProcessResult:
        """Bring the archive up to date."""
        return run([RETOLD, "sync"], self.env)

    def peak_of_sync(self) -> float:
        """Bring the archive up to date; return the peak memory of all processes in MB."""
        return peak_pss([RETOLD, "sync"], self.env)

    def list(self, *arguments: str) -> ProcessResult:
        """List the conversations."""
        return run([RETOLD, "list", *arguments], self.env)

    def stats(self, *arguments: str) -> ProcessResult:
        """Report tokens and cost."""
        return run([RETOLD, "stats", *arguments], self.env)

    def sql(self, query: str) -> ProcessResult:
        """Run a SQL query."""
        return run([RETOLD, "sql", query], self.env)

    def search(self, query: str, *, is_substring: bool = False) -> ProcessResult:
        """Search the archive."""
        how = ("--substring",) if is_substring else ()
        return run([RETOLD, "search", *how, "--json", "--", query], self.env, codes=(FOUND, NOTHING))


_FRESH: set[str] = set()


def sync_corpus(corpus: Corpus | PricedCorpus) -> Retold:
    """Return retold with an archive of a corpus; in each run the archive is built once, because the code may have changed."""
    retold = Retold(corpus.home, corpus.name)
    if corpus.name not in _FRESH:
        retold.remove_archive()
        _FRESH.add(corpus.name)
    retold.sync()
    return retold
