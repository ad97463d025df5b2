"""Gemini CLI: every form in which its versions from 0.1 to 0.61 wrote conversations down."""

from retold.agents.gemini.join import group, join
from retold.agents.gemini.places import find, homes
from retold.agents.gemini.read import read

NAME = "gemini"

__all__ = ["NAME", "find", "group", "homes", "join", "read"]
