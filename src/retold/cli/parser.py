"""What takes a command line apart, and says what is wrong with it."""

from __future__ import annotations

from argparse import ArgumentParser

from retold.cli.console import harmless

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from typing import NoReturn


class Parser(ArgumentParser):
    """A parser whose messages repeat what was typed, and steer no terminal with it."""

    def error(self, message: str) -> NoReturn:
        """End the process with a message."""
        super().error(harmless(message))
