"""The names of Codex's tools, mapped onto ours.

Evidence: `docs/formats/codex.md`, section 8.
"""

from retold.agents.codex.raw import Record
from retold.model.session import CATEGORIES, Canonical, Category

TOOLS: dict[str, Canonical] = {
    "shell": "shell_exec",
    "container.exec": "shell_exec",
    "shell_command": "shell_exec",
    "exec_command": "shell_exec",
    "write_stdin": "shell_exec",
    "local_shell": "shell_exec",
    "unified_exec": "shell_exec",
    "exec": "shell_exec",
    "wait": "shell_exec",
    "js_repl": "shell_exec",
    "js_repl_reset": "shell_exec",
    "node_repl.run": "shell_exec",
    "apply_patch": "file_edit",
    "read_file": "file_read",
    "view_image": "file_read",
    "list_dir": "file_read",
    "grep_files": "file_search",
    "tool_search": "file_search",
    "search_tool_bm25": "file_search",
    "web_search": "web_access",
    "web.run": "web_access",
    "web_fetch": "web_access",
    "memories.list": "memory",
    "memories.read": "memory",
    "memories.search": "memory",
    "memories.add_ad_hoc_note": "memory",
    "get_memory": "memory",
    "update_plan": "planning",
    "create_goal": "planning",
    "get_goal": "planning",
    "update_goal": "planning",
    "skill": "skill",
    "spawn_agent": "agent",
    "send_input": "agent",
    "resume_agent": "agent",
    "wait_agent": "agent",
    "close_agent": "agent",
    "list_agents": "agent",
    "send_message": "agent",
    "followup_task": "agent",
    "interrupt_agent": "agent",
    "spawn_agents_on_csv": "agent",
    "report_agent_job_result": "agent",
    "background_agent": "agent",
    "list_mcp_resources": "mcp",
    "list_mcp_resource_templates": "mcp",
    "read_mcp_resource": "mcp",
    "request_user_input": "ask_user",
    "image_gen.imagegen": "other",
    "image_generation": "other",
    "request_permissions": "other",
    "request_plugin_install": "other",
    "tool_suggest": "other",
    "list_available_plugins_to_install": "other",
    "clock.curr_time": "other",
    "clock.sleep": "other",
    "new_context": "other",
    "get_context_remaining": "other",
    "send_user_message_async": "other",
    "remain_silent": "other",
    "wait_for_environment": "other",
    "test_sync_tool": "other",
    "artifacts": "other",
}
AGENT_NAMESPACES = ("multi_agent_v1.", "collaboration.")
EVENT_TOOLS: dict[str, str] = {
    "exec_command_end": "exec_command",
    "CommandExecution": "exec_command",
    "patch_apply_end": "apply_patch",
    "FileChange": "apply_patch",
    "web_search_end": "web_search",
    "WebSearch": "web_search",
    "view_image_tool_call": "view_image",
    "ImageView": "view_image",
    "image_generation_end": "image_generation",
    "ImageGeneration": "image_generation",
    "collab_agent_spawn_end": "spawn_agent",
    "collab_agent_interaction_end": "send_input",
    "collab_waiting_end": "wait_agent",
    "collab_close_end": "close_agent",
    "collab_resume_end": "resume_agent",
}
"""The tool whose use an event tells of: where a script used it, no item names it."""
SCRIPTS = ("exec", "wait")
"""Tools that run what the model wrote, which may use the others."""
SPAWNS = "spawn_agent"
ASKS = "request_user_input"
MCP = "mcp__"
_EVERYWHERE = "functions."
"""The namespace that all tools are in."""


def full_name(name: str, namespace: object) -> str:
    """Return the name of a tool with its namespace, if it has one."""
    return f"{namespace}.{name}" if type(namespace) is str and namespace else name


def kind(name: str, arguments: Record) -> tuple[Canonical, Category]:
    """Return what a tool does, in our words."""
    canonical = TOOLS.get(name)
    if canonical is None:
        canonical = _unlisted(name.removeprefix(_EVERYWHERE))
    elif name == "wait" and "ids" in arguments:  # up to 0.98: what is called `wait_agent` now
        canonical = "agent"
    return canonical, CATEGORIES[canonical]


def _unlisted(name: str) -> Canonical:
    if name in TOOLS:
        return TOOLS[name]
    if name.startswith(MCP):
        return "mcp"
    if name.startswith("skills."):
        return "skill"
    for namespace in AGENT_NAMESPACES:
        if name.startswith(namespace):
            return "agent"
    return "other"


def base_name(name: str) -> str:
    """Return a tool's name without the namespace of the agents' tools."""
    for namespace in AGENT_NAMESPACES:
        name = name.removeprefix(namespace)
    return name


def mcp_names(name: str) -> tuple[str | None, str | None]:
    """Return the MCP server and the tool's name on it, where a tool's name tells: `mcp__<server>__<tool>`."""
    if not name.startswith(MCP):
        return None, None
    server, separator, tool = name.removeprefix(MCP).partition("__")
    if not separator:
        server, separator, tool = server.partition(".")
    return (server, tool) if separator else (None, None)
