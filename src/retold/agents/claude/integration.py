"""Connects Claude Code with retold by a plugin among the user's skills and a permission; restores and expires transcripts.

Run with 2.1.325. Claude Code loads a folder in `skills` with a manifest as a plugin, without a marketplace, installation or
question; `plugin init` of that version puts new plugins there. It asks before it uses a plugin's tools, and so refuses them
in a headless run, unless the user's settings allow them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from retold.agents.claude.discovery import (
    LONGEST_NAME,
    find_sources,
    project_folder_name,
    read_retention_limit,
)
from retold.agents.protocol import (
    NAME,
    AgentConnection,
    AgentHome,
    ConnectPlan,
    Ghost,
    HookCall,
    HookPlan,
    LostSession,
    OwnFile,
    RestoreAdditions,
    RestoreRefusal,
    SettingsListItem,
    Source,
    Target,
    Threat,
    format_json,
    format_signature,
)
from retold.agents.restore_files import plan_same_files
from retold.model.problem import Problem
from retold.reading.diagnostics import shift_time
from retold.reading.disk import open_file, time_from_ns

SIGNATURE = format_signature("claude")
TOOL_PREFIX = f"mcp__plugin_{NAME}_{NAME}"
"""The start of the names of the plugin's tools; as a permission it covers all of them."""
SKILL_FRONT_MATTER = ('argument-hint: "[what]"', f"allowed-tools: {TOOL_PREFIX}")


def plan_connection(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the plugin and the permission."""
    folder = home.path / "skills" / NAME
    texts = {
        ".claude-plugin/plugin.json": format_json(_manifest(connection)),
        "skills/recall/SKILL.md": connection.guide.skill(SIGNATURE, SKILL_FRONT_MATTER, "$ARGUMENTS"),
    }
    if connection.hooks is not None:
        texts["hooks/hooks.json"] = format_json(connection.hooks)
    files = tuple(OwnFile(folder / path, text) for path, text in texts.items())
    allowed = SettingsListItem(home.path / "settings.json", ("permissions", "allow"), TOOL_PREFIX)
    return ConnectPlan(folder, files, (allowed,), "/recall", is_trust_needed=False)


def _manifest(connection: AgentConnection) -> dict[str, object]:
    server = connection.server
    return {
        "name": NAME,
        "version": server.version,
        "description": f"{connection.guide.summary} {SIGNATURE}",
        "author": {"name": NAME},
        "mcpServers": {NAME: server.entry},
    }


HOOK_EVENTS = ("SessionEnd", "Stop")
HOOK_TIMEOUT = 30
HOOKS_FILE = ("skills", NAME, "hooks", "hooks.json")
"""The hooks file of a plugin."""


def plan_hooks(home: AgentHome, call: HookCall) -> HookPlan | None:
    """Return the hooks for `settings.json`."""
    hook = {"type": "command", "command": call.sh, "timeout": HOOK_TIMEOUT}
    return HookPlan(
        home.path / "settings.json", HOOK_EVENTS, {"hooks": [hook]}, home.path.joinpath(*HOOKS_FILE)
    )


def plan_restore(lost: LostSession, target: Target) -> RestoreAdditions | RestoreRefusal:
    """Return the files that a home lacks, byte for byte; for another project, in that project's folder."""
    if target.root is None or target.root == lost.session.project.root:
        return plan_same_files(lost, target)
    folder = project_folder_name(target.root)
    if folder is None:
        return RestoreRefusal(
            f"Claude Code hashes paths of more than {LONGEST_NAME} characters: {target.root}"
        )
    return plan_same_files(lost, target, lambda place: Path(folder, *place.parts[1:]))


def resume_command(native_id: str) -> Sequence[str]:
    """Return the command that resumes a session."""
    return ("claude", "--resume", native_id)


def find_ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Claude Code leaves no files without conversation."""
    return iter(())


def find_threats(home: AgentHome) -> Iterator[Threat]:
    """Yield every transcript with the time from which it is too old."""
    seconds = read_retention_limit(home).seconds or 0
    for source in find_sources(home):
        written_at = _modified_at(source) if isinstance(source, Source) else None
        if isinstance(source, Source) and written_at is not None:
            at = shift_time(written_at, timedelta(seconds=seconds)) if seconds else None
            yield Threat(source, source.cluster, "expired", at)


def _modified_at(source: Source) -> datetime | None:
    file = open_file(source.path, source.disk)
    if isinstance(file, Problem):
        return None
    file.close()
    return min(time_from_ns(file.modified_ns), datetime(2500, 1, 1, tzinfo=UTC))
