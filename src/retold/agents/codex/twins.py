"""Words that Codex writes twice, as an item for the model and as an event for the screen: kept once.

Evidence: `docs/formats/codex.md`, sections 4 and 5.
"""

from retold.agents.codex.state import Role, Twin

NEAR = 32
"""How many words wait for their twin: the two are written within moments of each other."""


def taken(twins: list[Twin], role: Role, text: str) -> Twin | None:
    """Return the twin of some words among those that wait, and let it wait no longer."""
    if not twins:
        return None
    for is_same in (str.__eq__, _is_within) if role == "user" else (str.__eq__,):
        for place, twin in enumerate(twins):
            if twin.role == role and is_same(twin.text, text):
                del twins[place]
                return twin
    return None


def wait(twins: list[Twin], role: Role, text: str, index: int) -> None:
    """Let words wait for their twin."""
    twins.append(Twin(role, text, index))
    if len(twins) > NEAR:
        del twins[0]


def _is_within(one: str, other: str) -> bool:
    """Tell whether one record of typed words holds the other: an item has labels of images around them."""
    short, long = sorted((one.strip(), other.strip()), key=len)
    return bool(short) and short in long
