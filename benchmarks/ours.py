"""retold with an archive that is ours to fill and to throw away."""

import shutil
from pathlib import Path

from corpora import CACHE, Corpus, Priced, size_of
from processes import RETOLD, Ran, environment, peak_pss, run

FOUND, NOTHING = 0, 1


class Retold:
    """The command, with a home in which the sessions are, and an archive."""

    def __init__(self, home: Path, name: str) -> None:
        self.archive = CACHE / "work" / f"retold-{name}"
        self.env = environment(home, RETOLD_HOME=str(self.archive))

    @property
    def size(self) -> int:
        """The bytes of archive and index."""
        return size_of(self.archive)

    def forget(self) -> None:
        """Make the next sync a first one."""
        shutil.rmtree(self.archive, ignore_errors=True)

    def sync(self) -> Ran:
        """Bring the archive up to date."""
        return run([RETOLD, "sync"], self.env)

    def peak_of_sync(self) -> float:
        """Bring the archive up to date; return the megabytes that all its processes take at most."""
        return peak_pss([RETOLD, "sync"], self.env)

    def list(self, *arguments: str) -> Ran:
        """List all that is in the archive."""
        return run([RETOLD, "list", *arguments], self.env)

    def stats(self, *arguments: str) -> Ran:
        """Report what was spent."""
        return run([RETOLD, "stats", *arguments], self.env)

    def sql(self, query: str) -> Ran:
        """Ask a question in SQL."""
        return run([RETOLD, "sql", query], self.env)

    def search(self, query: str, *, is_substring: bool = False) -> Ran:
        """Search the archive."""
        how = ("--substring",) if is_substring else ()
        return run([RETOLD, "search", *how, "--json", "--", query], self.env, codes=(FOUND, NOTHING))


_FRESH: set[str] = set()


def synced(corpus: Corpus | Priced) -> Retold:
    """Return retold with an archive of a corpus, made anew once a run: the code may have changed since the last."""
    retold = Retold(corpus.home, corpus.name)
    if corpus.name not in _FRESH:
        retold.forget()
        _FRESH.add(corpus.name)
    retold.sync()
    return retold
