"""Characters that hide, turn or erase other characters, made visible: a page shows what is there."""

import re

from retold.export.controls import HIDDEN

_COLOURS = re.compile("\x1b\\[[0-9;:]*[mK]")
"""What a terminal takes for colours, and for the end of a line that is written again."""
_NEVER = f"{HIDDEN}\xad"
_SUSPECT = re.compile(f"[{_NEVER}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""What may have to be shown: few texts have any of it, and to look for one is much faster than what comes then."""
_HIDDEN = re.compile(
    f"[{_NEVER}]"
    # Variants of a character may be chosen once, and only of those that have any: more of them carry a hidden text.
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)


def show_control_chars(text: str) -> str:
    """Return a text in which every character can be seen, and none changes the direction of others."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(_sign, text) if _SUSPECT.search(text) else text


def _sign(found: re.Match[str]) -> str:
    character = found.group()
    return "\ufffd" if "\ud800" <= character <= "\udfff" else f"⟨U+{ord(character):04X}⟩"
