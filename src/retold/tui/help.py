"""All keys."""

from retold.tui.box import Box
from retold.tui.card import IN_TEXT, LOST
from retold.tui.pages import GUTTER

KEYS = (
    ("", "The list"),
    ("type", "titles, projects and prompts at once, then all text"),
    ("", "fields too: tool:shell, is:error, role:user, after:7d"),
    ("↑ ↓ pgup pgdn", "choose a conversation"),
    ("enter", "read it"),
    ("tab", "to the list, where a letter is enough, and back"),
    ("ctrl+t or t", "all conversations, this project, this folder"),
    ("ctrl+e or e", "export it as a file"),
    ("ctrl+r or r", "resume it with its agent"),
    ("ctrl+o or R", "restore it, where its agent has lost it"),
    ("ctrl+s or s", "what it cost and how it went"),
    ("ctrl+d or d", "what is at risk, and what mends it"),
    ("esc", "empty the line, then quit"),
    ("q or ctrl+c", "quit"),
    ("", "The transcript"),
    ("[ and ]", "the turn before, the next turn"),
    ("u", "all turns: an outline to jump by"),
    ("/", "find; n the next place, N the one before"),
    ("t", "thoughts"),
    ("o", "tools: their names, all they gave, none"),
    ("v", "everything said, or only what its agent holds"),
    ("i", "notices, and what the agent added to messages"),
    ("g and G", "the beginning, the end"),
    ("e r R", "export, resume, restore, as in the list"),
    ("", "Marks"),
    (IN_TEXT, "found in the text, not by its name"),
    (LOST, "gone from its agent's home; the archive has it"),
    (GUTTER.strip(), "rewound, compacted or superseded: the heading says"),
)
_WIDTH = 15


class Help(Box):
    """What can be done."""

    KEYS = "↑↓ scroll   esc back"
    IS_LARGE = True

    def __init__(self) -> None:
        super().__init__("Keys")

    def on_mount(self) -> None:
        """Tell them."""
        self.query_one("VerticalScroll").focus()
        lines = []
        for key, told in KEYS:
            is_heading = not key and told[0].isupper()
            lines.append(
                [("title", told)] if is_heading else [("tool", f"  {key:<{_WIDTH}}"), ("plain", told)]
            )
        self.tell(lines)
