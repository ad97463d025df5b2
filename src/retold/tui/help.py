"""All keys."""

from retold.tui.box import Box

KEYS = (
    ("", "The list"),
    ("type", "narrow the list: titles, projects and prompts at once, all text a moment later"),
    ("", 'project:x tool:shell is:error after:7d -word "a phrase" work as in `retold search`'),
    ("↑ ↓ pgup pgdn", "choose a conversation"),
    ("enter", "read it"),
    ("tab", "from the line to the list and back; in the list a letter is enough:"),
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
    ("v", "everything that was said, or only what its agent holds"),
    ("i", "notices, and what the agent added to messages"),
    ("g and G", "the beginning, the end"),
    ("", "Marks"),
    ("≡", "found in the text, not by its name"),
    ("†", "gone from its agent's home; the archive has it"),
    ("┆", "rewound, compacted or superseded: the heading says which"),
)  # fmt: skip
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
