"""Who plays: the projects, the programs and their versions, and the folder all of it lies in."""

import hashlib
import re
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

PROJECTS = {
    "crumb-orders": "Orders for Crumb & Co., a bakery: a small web app.",
    "hearth-sensor": "Firmware of the temperature sensors in the bakery's ovens.",
    "ladle": "A library that reads recipes.",
    "mira-notes": "A static site: notes on baking and programming.",
    "harbour": "Scripts that set up and back up two small servers.",
}
VERSIONS = {"claude": "2.1.100", "codex": "0.148.0", "gemini": "0.61.0"}
"""The versions whose files are imitated; older sessions of Gemini CLI are those of 0.38.2 and 0.28.2."""
INSTRUCTIONS = {"claude": 16_400, "codex": 8_900, "gemini": 9_700, "subagent": 4_200}
"""Tokens that each agent sends before anybody has said anything."""


class StorySetting(msgspec.Struct, frozen=True):
    """A home below a folder, at a moment."""

    folder: Path
    now: datetime

    @property
    def home(self) -> Path:
        """The person's home."""
        return self.folder / "home"

    def root(self, project: str) -> str:
        """Return where a project lies."""
        return str(self.home / "code" / project)

    def project_hash(self, project: str) -> str:
        """Return what Gemini CLI calls a project."""
        return hashlib.sha256(self.root(project).encode()).hexdigest()

    def claude_name(self, project: str) -> str:
        """Return what Claude Code calls a project's folder."""
        return re.sub(r"[^a-zA-Z0-9]", "-", self.root(project))

    def start(self, when: str) -> datetime:
        """Return the moment that a script means: `18 09:12` is a time of day some days ago, `3h` some hours ago."""
        if when.endswith("h"):
            return self.now - timedelta(hours=int(when[:-1]))
        days, time = when.split()
        hour, minute = map(int, time.split(":"))
        day = self.now - timedelta(days=int(days))
        return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


class File(msgspec.Struct, frozen=True):
    """A file to be: where in the person's home, what is in it, and when it was last written."""

    path: str
    text: str
    at: datetime
