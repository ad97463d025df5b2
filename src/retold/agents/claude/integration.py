"""How Claude Code is told to ask retold: a plugin in the folder of the user's skills, and a permission.

Run with 2.1.325. A folder in `skills` with a manifest in it is a plugin that is loaded without a marketplace, without
being installed and without being asked for; `plugin init` of that version puts new ones there. Its tools are asked about,
and so refused in a headless run, unless the user's settings allow them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from retold.agents.claude.discovery import LONGEST, find, project_folder
from retold.agents.protocol import (
    NAME,
    AgentConnection,
    AgentHome,
    ConnectPlan,
    Ghost,
    HookCall,
    HookPlan,
    Limit,
    ListItem,
    Lost,
    OwnFile,
    Restored,
    RestoreRefused,
    Source,
    Target,
    Threat,
    as_json,
    signature,
)
from retold.agents.restore_files import verbatim
from retold.model.problem import Problem, problem
from retold.reading.diagnostics import shifted
from retold.reading.disk import modified_at, open_file, printable, read_settings

WRITTEN = signature("claude")
TOOLS = f"mcp__plugin_{NAME}_{NAME}"
"""What the names of its tools begin with; as a permission, all of them."""
FRONT = ('argument-hint: "[what]"', f"allowed-tools: {TOOLS}")


def connect_plan(home: AgentHome, connection: AgentConnection) -> ConnectPlan:
    """Return the plugin and the permission."""
    folder = home.path / "skills" / NAME
    texts = {
        ".claude-plugin/plugin.json": as_json(_manifest(connection)),
        "skills/recall/SKILL.md": connection.guide.skill(WRITTEN, FRONT, "$ARGUMENTS"),
    }
    if connection.hooks is not None:
        texts["hooks/hooks.json"] = as_json(connection.hooks)
    files = tuple(OwnFile(folder / path, text) for path, text in texts.items())
    allowed = ListItem(home.path / "settings.json", ("permissions", "allow"), TOOLS)
    return ConnectPlan(folder, files, (allowed,), "/recall", is_trust_needed=False)


def _manifest(connection: AgentConnection) -> dict[str, object]:
    server = connection.server
    return {
        "name": NAME,
        "version": server.version,
        "description": f"{connection.guide.summary} {WRITTEN}",
        "author": {"name": NAME},
        "mcpServers": {NAME: server.entry},
    }


EVENTS = ("SessionEnd", "Stop")
PATIENCE = 30
PLUGIN = ("skills", NAME, "hooks", "hooks.json")
"""Where a plugin has its hooks."""


def hook_plan(home: AgentHome, call: HookCall) -> HookPlan | None:
    """Return what has to stand in `settings.json`."""
    hook = {"type": "command", "command": call.sh, "timeout": PATIENCE}
    return HookPlan(home.path / "settings.json", EVENTS, {"hooks": [hook]}, home.path.joinpath(*PLUGIN))


def restore(lost: Lost, target: Target) -> Restored | RestoreRefused:
    """Return the files that a home lacks, byte for byte; for another project, in the folder of that project."""
    if target.root is None or target.root == lost.session.project.root:
        return verbatim(lost, target)
    folder = project_folder(target.root)
    if folder is None:
        return RestoreRefused(f"Claude Code hashes paths of more than {LONGEST} characters: {target.root}")
    return verbatim(lost, target, lambda place: Path(folder, *place.parts[1:]))


def resume(native_id: str) -> Sequence[str]:
    """Return the command that goes on with a session."""
    return ("claude", "--resume", native_id)


DAYS = 30
_DAY = 86_400
_LONGEST = 36_500


def ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: Claude Code leaves no files without conversation beside those that have one."""
    return iter(())


def limit(home: AgentHome) -> Limit:
    """Return for how long a transcript is kept that nothing is added to."""
    path = home.path / "settings.json"
    found = read_settings(path, home.disk)
    if isinstance(found, Problem):
        return Limit(DAYS * _DAY, "written", problems=(found,))
    days = found.get("cleanupPeriodDays", DAYS)
    if type(days) not in (int, float) or days < 0:
        odd = problem("unexpected-shape", "no number of days", printable(path), pointer="/cleanupPeriodDays")
        return Limit(DAYS * _DAY, "written", problems=(odd,))
    return Limit(min(days, _LONGEST) * _DAY, "written")


def retention(home: AgentHome) -> Iterator[Threat]:
    """Yield every transcript, with the time from which on it is too old."""
    seconds = limit(home).seconds or 0
    for source in find(home):
        written_at = _written_at(source) if isinstance(source, Source) else None
        if isinstance(source, Source) and written_at is not None:
            at = shifted(written_at, timedelta(seconds=seconds)) if seconds else None
            yield Threat(source, source.cluster, "expired", at)


def _written_at(source: Source) -> datetime | None:
    file = open_file(source.path, source.disk)
    if isinstance(file, Problem):
        return None
    file.close()
    return min(modified_at(file.modified_ns), datetime(2500, 1, 1, tzinfo=UTC))
