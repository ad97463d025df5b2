"""The tools, in the order in which agents are told of them."""

from retold.mcp.tools.search_history import SEARCH_HISTORY

TOOLS = (SEARCH_HISTORY,)
