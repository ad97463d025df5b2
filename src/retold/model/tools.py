"""What kinds of tools there are: our names for what a tool does, and the category each belongs to."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.model.parts import Canonical, Category

CATEGORIES: dict[Canonical, Category] = {
    "shell_exec": "Execute",
    "file_write": "Edit",
    "file_edit": "Edit",
    "file_read": "Read",
    "file_search": "Search",
    "web_access": "Fetch",
    "memory": "Think",
    "planning": "Plan",
    "skill": "Other",
    "agent": "Other",
    "mcp": "Other",
    "ask_user": "Other",
    "other": "Other",
}
