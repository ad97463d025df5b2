"""Edits, as scripts tell them: lines that go, lines that come, and lines around them."""

import difflib
from typing import Any

import msgspec


class StoryDiff(msgspec.Struct, frozen=True):
    """A piece of a file, before and after."""

    old: str
    new: str

    def marked(self) -> list[str]:
        """Return its lines, each with what becomes of it in front: `-`, `+` or a blank."""
        lines = difflib.ndiff(self.old.splitlines(), self.new.splitlines())
        return [line[0] + line[2:] for line in lines if not line.startswith("?")]

    def unified(self, name: str) -> str:
        """Return it as Gemini CLI shows it."""
        lines = difflib.unified_diff(
            self.old.splitlines(keepends=True), self.new.splitlines(keepends=True), "a", "b", n=3
        )
        body = "".join(list(lines)[2:])
        rule = "=" * 67
        return f"Index: {name}\n{rule}\n--- {name}\tOriginal\n+++ {name}\tWritten\n{body}"

    def hunks(self) -> list[dict[str, Any]]:
        """Return it as Claude Code keeps it."""
        old, new = len(self.old.splitlines()), len(self.new.splitlines())
        return [{"oldStart": 1, "oldLines": old, "newStart": 1, "newLines": new, "lines": self.marked()}]

    def patch(self, path: str) -> str:
        """Return it as Codex applies it."""
        marked = "".join(f"{line}\n" for line in self.marked())
        return f"*** Begin Patch\n*** Update File: {path}\n@@\n{marked}*** End Patch\n"


def parse_change(body: str) -> StoryDiff:
    """Read lines that begin with `-`, `+` or a blank, each with a column between."""
    old = [line[2:] for line in body.splitlines() if not line.startswith("+")]
    new = [line[2:] for line in body.splitlines() if not line.startswith("-")]
    return StoryDiff("".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))
