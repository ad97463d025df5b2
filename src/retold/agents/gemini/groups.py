"""What files of one conversation share, by which they are found to be one, and those of a family."""

import re

from retold.agents.gemini.places import Origin
from retold.agents.gemini.restored import original_id

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def session_group(place: Origin, native_id: str, project: object, kind: object, first: str) -> str:
    """Return project and session id; `first` tells sessions apart whose ids are no UUIDs and may name many."""
    key = f"session:{project or place.project_key}:{native_id}"
    if place.parent_id is not None:
        return f"{key}:of:{original_id(place.parent_id)}"
    if kind == "subagent":
        return f"{key}:subagent:{place.stem}"
    return key if _UUID.fullmatch(native_id) else f"{key}:{first}"


def parent_id(path: str, native_id: str | None) -> str | None:
    """Return the id of the session that started a subagent: its folder's name, or its own id where that is shared."""
    folder, name = re.split(r"[/\\]", path)[-2:]
    return native_id if folder == "chats" and name.startswith("session-") else original_id(folder)


def agent_id(key: str) -> str:
    """Return what tells a subagent from others of its parent."""
    return key.rpartition("/")[2].removeprefix("gemini:")
