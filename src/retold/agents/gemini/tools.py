"""The names of Gemini CLI's tools, mapped onto ours.

The first rows are what scripts rely on; the rest is `docs/formats/gemini.md`, section 11.
"""

from retold.model.session import CATEGORIES, Canonical, Category

TOOLS: dict[str, Canonical] = {
    "run_shell_command": "shell_exec",
    "shell": "shell_exec",
    "write_file": "file_write",
    "replace": "file_edit",
    "edit_file": "file_edit",
    "read_file": "file_read",
    "read_many_files": "file_read",
    "list_directory": "file_read",
    "glob": "file_search",
    "search_file_content": "file_search",
    "grep_search": "file_search",
    "codebase_investigator": "file_search",
    "search_files": "file_search",
    "web_fetch": "web_access",
    "google_web_search": "web_access",
    "web_search": "web_access",
    "save_memory": "memory",
    "write_todos": "planning",
    "activate_skill": "skill",
    "list_background_processes": "shell_exec",
    "read_background_output": "shell_exec",
    "get_internal_docs": "file_read",
    "write_todos_list": "planning",
    "tracker_create_task": "planning",
    "tracker_update_task": "planning",
    "tracker_get_task": "planning",
    "tracker_list_tasks": "planning",
    "tracker_add_dependency": "planning",
    "tracker_visualize": "planning",
    "enter_plan_mode": "planning",
    "exit_plan_mode": "planning",
    "update_topic": "planning",
    "invoke_agent": "agent",
    "delegate_to_agent": "agent",
    "cli_help": "agent",
    "introspection_agent": "agent",
    "generalist": "agent",
    "browser_agent": "agent",
    "confucius": "agent",
    "complete_task": "agent",
    "list_mcp_resources": "mcp",
    "read_mcp_resource": "mcp",
    "ask_user": "ask_user",
    "click": "web_access",
    "navigate": "web_access",
    "analyze_screenshot": "web_access",
}

SHELL_TOOLS = frozenset(("run_shell_command", "shell"))
STARTS_AGENT = frozenset(
    ("codebase_investigator", "invoke_agent", "delegate_to_agent", "cli_help", "introspection_agent", "generalist",
     "browser_agent", "confucius")
)  # fmt: skip

MCP_ENDING = " MCP Server)"


KINDS = {name: (canonical, CATEGORIES[canonical]) for name, canonical in TOOLS.items()}


def kind(name: str, is_mcp: bool, starts_agent: bool) -> tuple[Canonical, Category]:  # noqa: FBT001 - what a call says
    """Return our name for a tool, and its category; the flags are what a call says beyond the name."""
    if name in KINDS:
        return KINDS[name]
    if is_mcp or name.startswith("mcp_"):
        return "mcp", "Other"
    return ("agent" if starts_agent else "other"), "Other"


def mcp_names(title: str) -> tuple[str, str] | None:
    """Return (server, tool) from a call's title, `<tool> (<server> MCP Server)`: it holds in every version."""
    tool, opened, server = title.removesuffix(MCP_ENDING).rpartition(" (")
    return (server, tool) if opened and tool and server else None
