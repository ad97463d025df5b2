"""The names of Claude Code's tools, mapped onto ours: `docs/formats/claude.md`, section 9."""

from retold.model.session import CATEGORIES, Canonical, Category

TOOLS: dict[str, Canonical] = {
    "Bash": "shell_exec",
    "BashOutput": "shell_exec",
    "KillBash": "shell_exec",
    "KillShell": "shell_exec",
    "PowerShell": "shell_exec",
    "Monitor": "shell_exec",
    "REPL": "shell_exec",
    "Write": "file_write",
    "Edit": "file_edit",
    "MultiEdit": "file_edit",
    "NotebookEdit": "file_edit",
    "Read": "file_read",
    "NotebookRead": "file_read",
    "LS": "file_read",
    "Grep": "file_search",
    "Glob": "file_search",
    "LSP": "file_search",
    "ToolSearch": "file_search",
    "WebFetch": "web_access",
    "WebSearch": "web_access",
    "web_search": "web_access",
    "web_fetch": "web_access",
    "TodoWrite": "planning",
    "TodoRead": "planning",
    "TaskCreate": "planning",
    "TaskUpdate": "planning",
    "TaskGet": "planning",
    "TaskList": "planning",
    "EnterPlanMode": "planning",
    "ExitPlanMode": "planning",
    "exit_plan_mode": "planning",
    "Task": "agent",
    "Agent": "agent",
    "TaskOutput": "agent",
    "AgentOutputTool": "agent",
    "TaskStop": "agent",
    "SendMessage": "agent",
    "TeamCreate": "agent",
    "TeamDelete": "agent",
    "Workflow": "agent",
    "Skill": "skill",
    "SlashCommand": "skill",
    "ListMcpResourcesTool": "mcp",
    "ReadMcpResourceTool": "mcp",
    "AskUserQuestion": "ask_user",
}

STARTS_AGENT = frozenset(("Task", "Agent"))
_MCP = "mcp__"
KINDS = {name: (canonical, CATEGORIES[canonical]) for name, canonical in TOOLS.items()}


def kind(name: str) -> tuple[Canonical, Category]:
    """Return our name for a tool, and its category."""
    known = KINDS.get(name)
    if known is not None:
        return known
    return ("mcp" if name.startswith(_MCP) else "other"), "Other"


def mcp_names(name: str) -> tuple[str, str] | None:
    """Return (server, tool) from `mcp__<server>__<tool>`."""
    server, divided, tool = name.removeprefix(_MCP).partition("__")
    return (server, tool) if name.startswith(_MCP) and divided and server and tool else None
