"""What people read: reviewed as prose, kept as snapshots."""

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from retold.agents.registry import read
from retold.export.text.events import format_event
from retold.export.transcript import LINE, TranscriptOptions, format_transcript, key_argument
from retold.model.events import steps
from support import cases

SAMPLE = Path(__file__).parents[1] / "fixtures" / "gemini_sample.json"
EVERYTHING = TranscriptOptions(tools="full", thoughts=True, tokens=True, notices=True)
SHOWN = (
    "a-cancelled-tool", "a-checkpoint", "a-compression-keeps-a-tail", "a-failing-command-is-a-tools-success",
    "a-shell-command-of-the-user", "a-torn-last-line", "captured-json-output-of-a-failed-run",
    "claude-parallel-calls-each-get-their-own-result", "claude-lines-of-another-session-are-not-its-own",
    "codex-lines-with-events-beside-them", "codex-turns-that-were-rolled-back", "hook-context-around-a-prompt", "notices-are-events", "referenced-files-in-parts",
    "rewind-drops-a-message-and-all-after-it", "steering-holds-the-humans-words",
    "unknown-records-types-parts-and-keys-are-kept",
)  # fmt: skip


def page(file: Path, wanted: TranscriptOptions = TranscriptOptions()) -> str:  # noqa: B008 - a frozen value
    return "\n".join(line.text for session in read(file) for line in format_transcript(session, wanted))


def test_the_sample_reads_well(snapshot: SnapshotAssertion) -> None:
    assert page(SAMPLE) == snapshot


def test_the_sample_with_everything(snapshot: SnapshotAssertion) -> None:
    assert page(SAMPLE, EVERYTHING) == snapshot


def test_the_sample_without_tools() -> None:
    assert "read_file" not in page(SAMPLE, TranscriptOptions(tools="none"))


@pytest.mark.parametrize("wanted", [TranscriptOptions(), EVERYTHING], ids=["conversation", "everything"])
@pytest.mark.parametrize("case", SHOWN)
def test_a_case_reads_well(
    case: str, wanted: TranscriptOptions, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    folder = cases.copy_case(case, tmp_path)
    pages = [page(folder / file, wanted) for file in cases.input_files(case)]
    assert "\n".join(pages) == snapshot


def test_the_sample_as_events(snapshot: SnapshotAssertion) -> None:
    (session,) = read(SAMPLE)
    assert "\n".join(format_event(step).text for step in steps(session, with_text=True)) == snapshot


@pytest.mark.parametrize("case", ["hook-context-around-a-prompt", "content-as-text-as-a-part-as-a-list"])
def test_a_prompt_of_several_texts_is_shown_once(case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    (file,) = cases.input_files(case)
    (session,) = read(folder / file)
    _title, *shown = page(folder / file).splitlines()
    for entry in session.timeline:
        if prompt := getattr(entry, "prompt", None):
            assert shown.count(prompt) == 1, prompt


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, ""),
        ({"content": "x", "file_path": "a.txt"}, "a.txt"),
        ({"description": "why", "command": "make"}, "make"),
        ({"paths": ["a", "b"]}, "a b"),
        ({"file_path": "", "pattern": "*"}, "*"),
        ({"odd": 3}, "3"),
        ({"odd": "text"}, "text"),
    ],
)
def test_the_argument_that_tells_most(arguments: dict[str, Any], told: str) -> None:
    assert key_argument(arguments) == told


def test_a_long_argument_is_cut(tmp_path: Path) -> None:
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "x" * 500}, "status": "error"}
    record = {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}
    file = tmp_path / "session.jsonl"
    file.write_text(json.dumps({"sessionId": "s", "projectHash": "h"}) + "\n" + json.dumps(record) + "\n")
    assert max(map(len, page(file).splitlines())) < LINE + 40
