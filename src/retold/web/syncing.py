"""The archive brought up to date because somebody asked for it, by another process: it reads the agents' files."""

import json
import subprocess
from collections.abc import Mapping
from threading import Lock

import msgspec

from retold.maintenance.invocation import own_command

_alone = Lock()


class PageSyncOutcome(msgspec.Struct, frozen=True):
    """What came of it, in words."""

    text: str
    is_well: bool = True


def sync(env: Mapping[str, str]) -> PageSyncOutcome:
    """Run `retold sync`, unless it runs for somebody else already."""
    if not _alone.acquire(blocking=False):
        return PageSyncOutcome("The archive is being brought up to date already.")
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            [*own_command(), "sync", "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=dict(env),
        )
    finally:
        _alone.release()
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        return PageSyncOutcome(
            told[-1] if told else f"retold sync ended with {done.returncode}", is_well=False
        )
    return PageSyncOutcome(_words(json.loads(done.stdout)))


def _words(told: Mapping[str, int]) -> str:
    new, read = told["new_sessions"], told["read"]
    if not read:
        return f"Nothing was new in {told['found']:,} files."
    sessions = f"{new:,} new session{'' if new == 1 else 's'}" if new else "no new session"
    return f"{read:,} of {told['found']:,} files were read: {sessions}."
