"""A session written back: Claude Code finds it by the folder that its file lies in.

The folder's name alone decides what `--continue` and the list of sessions show; `cwd` in the lines does not. So the files
stay as they were, byte for byte, wherever they are written.
"""

from collections.abc import Sequence
from pathlib import Path

from retold.agents.claude.places import LONGEST, project_folder
from retold.agents.protocol import Lost, Restored, RestoreRefused, Target
from retold.agents.verbatim import verbatim


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
