"""The page that leads from a bucket of homes to a chart, followed to the letter."""

from collections import Counter
from pathlib import Path

import pytest

from conftest import available
from support.docs_pages import follow_page
from support.home_tables import tables_from_archive

DULL = 10_000
"""Bytes of a chart with nothing on it are fewer."""


@pytest.mark.heavy  # the page installs retold and Spark into a virtual environment of its own
@pytest.mark.spark
@pytest.mark.usefixtures("java")
def test_a_bucket_of_homes_becomes_a_chart(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    env = {
        "HOME": str(tmp_path / "nobody"),
        "RETOLD_HOME": str(tmp_path / "retold"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PIP_NO_COMPILE": "1",  # most of what is installed is never imported
    }
    with available():
        answers = list(follow_page("scale.md", folder, env))
    assert (folder / "venv" / "bin" / "retold").is_file(), "all of it ran with what the page installs"
    assert len(answers) == 5
    assert all(answers)
    homes = [(home.name, home) for home in sorted((folder / "bucket" / "homes").iterdir())]
    expected = tables_from_archive(tmp_path / "archive", homes)
    months: Counter[str] = Counter()
    for row in expected["requests"]:
        months[f"{row['happened_at']:%Y-%m}"] += row["total_tokens"]
    for asked in (answers[0], answers[4]):  # of the tables that Spark wrote, and of an export
        told: Counter[str] = Counter()
        for _, month, tokens, *_ in asked:
            told[month] += int(tokens)
        assert told == months
    assert {row[0] for row in answers[0]} == {"firmware", "shop"}
    assert answers[3] == [("loss", "not-a-session", 1)]
    chart = (folder / "tokens.png").read_bytes()
    assert chart.startswith(b"\x89PNG")
    assert len(chart) > DULL
