"""The search for unknown roots, as a person sees it."""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from retold.cli.console import Console
from retold.config import retold_home
from retold.projects.scan import DEPTH, SECONDS, scan


def scan_for(hashes: Collection[str], console: Console) -> dict[str, str]:
    """Return the roots that were found, and keep them for next time."""
    if not hashes:
        console.tell("retold: every project's root is known")
        return {}
    console.tell(
        f"retold: looking for {len(hashes)} roots, {DEPTH} folders deep, for {SECONDS:.0f} seconds at most"
    )
    is_shown = sys.stderr.isatty()

    def tell(seen: int) -> None:
        if is_shown:
            console.err.write(f"\r{seen:,} folders")

    found, is_done = scan(Path(os.path.expanduser("~")), hashes, tell)
    end = "\r\x1b[K" if is_shown else ""
    told = "" if is_done else "; the time ran out before the walk was done"
    console.err.write(f"{end}retold: found {len(found)} of {len(hashes)}{told}\n")
    if found:
        from retold.synchronization.user_changes import learn_roots

        learn_roots(retold_home(os.environ), found)
    return found
