"""The types that all agents share: sessions, messages, parts, usage, projects, problems, and their JSON form."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from retold.model.session import Canonical, Category

FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total", "cache_write_1h")
"""The tokens of a request, by the names of the fields of `Usage`."""
CATEGORIES: "dict[Canonical, Category]" = {
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
"""The category of each canonical tool."""
