"""What models are told of the tools when an agent is connected: all of them, and no others."""

import re

from retold.maintenance.connect import make_guide
from retold.mcp.prompts import PROMPTS
from retold.mcp.tools import TOOLS

NAMES = {tool.name for tool in TOOLS}
NAME = re.compile(r"\b[a-z]+_[a-z]+\b")


def test_the_guide_names_every_tool() -> None:
    told = make_guide()
    assert set(NAME.findall(told.context)) == NAMES
    assert set(NAME.findall(told.recall)) == NAMES


def test_whoever_names_a_tool_names_one_that_is_there() -> None:
    texts = [*(tool.about for tool in TOOLS), *(offer.instruction for offer in PROMPTS)]
    assert set(NAME.findall(" ".join(texts))) <= NAMES
