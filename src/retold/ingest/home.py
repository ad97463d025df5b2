"""The folder in which retold keeps its own things."""

import os
import sys
from collections.abc import Mapping


def retold_home(env: Mapping[str, str]) -> str:
    """Return `RETOLD_HOME`, or the platform's folder for data."""
    if chosen := env.get("RETOLD_HOME"):
        return chosen
    user = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(user, "Library", "Application Support", "retold")
    if sys.platform == "win32":
        return os.path.join(env.get("LOCALAPPDATA") or os.path.join(user, "AppData", "Local"), "retold")
    return os.path.join(env.get("XDG_DATA_HOME") or os.path.join(user, ".local", "share"), "retold")
