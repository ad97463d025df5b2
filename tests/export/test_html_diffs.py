"""Diffs in pages: whatever a line begins with, its text is escaped."""

import pytest

from retold.export.diffs import DiffChange
from retold.export.html.tool_calls import diff_box


@pytest.mark.parametrize("sign", ["+", "-", "@@ ", "*** ", "+++ ", " ", ""])
def test_every_line_is_escaped(sign: str) -> None:
    box = str(diff_box(DiffChange("a.py", f"{sign}<script>hit()</script>"), "k"))
    assert "&lt;script&gt;hit()&lt;/script&gt;" in box
    assert "<script" not in box
