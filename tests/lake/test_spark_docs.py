"""What the page about Spark says to type runs, block by block, in one Spark."""

import re
from pathlib import Path
from typing import Any

import pytest

from conftest import available
from support.home_tables import two_homes
from support.spark_cluster import QUIET, start_spark

pytestmark = [pytest.mark.spark, *(pytest.mark.filterwarnings(one) for one in QUIET)]
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_homes(tmp_path / "homes")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    with available(), start_spark(tmp_path / "spark", "local[2]"):
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
        counts = {name: names[name].count() for name in ("calls", "tokens", "sessions", "requests", "problems", "events")}  # fmt: skip
    assert len(blocks) == 6
    assert (counts["sessions"], counts["calls"]) == (8, 12)
    assert names["together"] == "[]"
    assert counts["tokens"] == counts["requests"] == 15
    assert counts["events"] > counts["calls"]
    assert counts["problems"] == 0
