"""The steps that the rules may take with one text, counted in characters: the count is the same on every machine."""

FREE = 1_000_000
"""Steps for any text, however short."""
PER_CHARACTER = 16
"""Steps for each character. Files of agents take two at most, and less than one on average."""


class OverBudget(Exception):  # noqa: N818 - it says what happened
    """A text takes more steps than it may: nobody knows whether it holds secrets."""


class Budget:
    """The steps that are left for one text."""

    def __init__(self, length: int, free: int = FREE) -> None:
        self.left = free + PER_CHARACTER * length

    def spend(self, steps: int) -> None:
        """Take the characters that a rule has read from what is left; raises OverBudget."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget
