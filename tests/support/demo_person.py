"""A person with the demo's home: weeks of invented work with three agents, archived."""

import os
from datetime import UTC, datetime
from pathlib import Path

from retold.demo.home import make_home
from support.person import Person


class DemoPerson(Person):
    """A person who runs `retold` in a demo home."""

    def __init__(self, folder: Path) -> None:
        """Make the demo home and archive it."""
        self.made = make_home(folder / "demo", datetime.now(UTC))
        super().__init__(self.made.folder / "home", Path(self.made.variables["RETOLD_HOME"]))
        self.age()
        self.sync()

    @property
    def env(self) -> dict[str, str]:
        return super().env | self.made.variables

    def tree(self) -> dict[str, bytes]:
        """Return the contents of every file in the agents' homes."""
        return {str(path): path.read_bytes() for path in self.sources()}

    def lose(self, key: str) -> list[Path]:
        """Delete the agent's files of a conversation, as the agent itself does, and return their paths."""
        short = key.rpartition(":")[2].removeprefix("session-")
        gone = [path for path in self.sources() if short in path.name]
        assert gone, key
        for path in gone:
            os.unlink(path)
        return gone

    def lost(self) -> list[str]:
        """Return the keys of the sessions that `retold doctor` reports as lost."""
        return [one["session"] for one in self.run("doctor", "--json").objects if one["finding"] == "lost"]
