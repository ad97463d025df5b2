"""The page about Claude Code's files names a case for what it claims, and every case stands for a claim."""

import re
from pathlib import Path

from retold.model.problem import CODES
from support import cases

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "claude.md"
NAMED = re.compile(r"`([a-z0-9.]+(?:-[a-z0-9.]+){2,})`")


def test_every_case_is_named_and_every_name_is_a_case() -> None:
    own_cases = {name.removeprefix("claude-") for name in cases.NAMES if name.startswith("claude-")}
    named = set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    assert own_cases - named == set()
    assert named - own_cases <= {*OTHER_WORDS, *CODES}


OTHER_WORDS = {"file-history-snapshot", "file-history-delta", "api-request-shape", "api-request-blob"}
"""Words of the files that look like names of cases."""
