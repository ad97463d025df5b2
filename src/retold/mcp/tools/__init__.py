"""The tools, in the order in which agents get them."""

from retold.mcp.tools.file_history import FILE_HISTORY
from retold.mcp.tools.find_decisions import FIND_DECISIONS
from retold.mcp.tools.find_fix import FIND_FIX
from retold.mcp.tools.project_brief import PROJECT_BRIEF
from retold.mcp.tools.read_session import READ_SESSION
from retold.mcp.tools.recent_work import RECENT_WORK
from retold.mcp.tools.search_history import SEARCH_HISTORY

TOOLS = (SEARCH_HISTORY, READ_SESSION, FIND_FIX, FIND_DECISIONS, FILE_HISTORY, RECENT_WORK, PROJECT_BRIEF)
