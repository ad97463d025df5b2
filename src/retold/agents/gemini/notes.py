"""What is written down while a file is normalised, and what was met in it."""

from retold.reading.diagnostics import ReaderNotes as Noted


class Notes(Noted):
    """Problems and the count of opaque things, with what later steps ask about the file."""

    def __init__(self, path: str, pointer: str = "") -> None:
        """Take the file's path, and the pointer to the list of its records where that is one document."""
        super().__init__(path, pointer)
        self.has_results = False
        """Whether a tool's result was met in a record of its own."""
        self.has_agents = False
        """Whether a call was met that starts a subagent."""
        self.may_lack_tokens = False
        """Whether an answer was met that has no tokens, or calls that were done at several times."""
