"""The tools, in the order in which agents are told of them."""

from retold.mcp.tools.find_decisions import FIND_DECISIONS
from retold.mcp.tools.find_fix import FIND_FIX
from retold.mcp.tools.search_history import SEARCH_HISTORY

TOOLS = (SEARCH_HISTORY, FIND_FIX, FIND_DECISIONS)
