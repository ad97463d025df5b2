"""Every case is read as its `expected.json` says.

`RETOLD_UPDATE_CASES=1 pytest tests/test_cases.py` writes what is read now; review it as you review code: the
expectation follows from the format notes and the contract, not from the reader.
"""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from retold.agents.registry import NotASession
from retold.model.problem import CODES
from retold.model.serialization import decode_session, schemas
from retold.model.session import Session, View
from support import cases
from support.session_json import session_json

IS_UPDATE = bool(os.environ.get("RETOLD_UPDATE_CASES"))
VIEWS: tuple[View, ...] = get_args(View)
SESSION = Draft202012Validator(schemas()["session"])
PROBLEM = Draft202012Validator(schemas()["problem"])
TESTED_ON_DISK = {
    "changed-while-read": "test_a_file_that_never_settles_is_told",
    "missing-file": "test_a_missing_file_is_told",
    "not-a-file": "test_a_folder_is_told",
    "nothing-said": "test_doctor_finds_nothing_about_a_set_up_of_another_agent",
    "original-damaged": "test_a_damaged_original_costs_no_other",
    "reader-failed": "test_a_bug_of_ours_costs_one_conversation_and_is_told",
    "reader-timeout": "test_a_cluster_that_cannot_be_read_is_put_off_and_costs_no_other",
    "too-long": "test_a_document_that_is_too_long_is_told_and_its_bytes_are_kept",
    "unreadable-file": "test_a_file_that_may_not_be_read_is_told",
}
"""Problems of the file system, and bugs of ours, which no static file can trigger, and the tests that do."""


@cases.every_case
def test_a_case_is_read_as_expected(case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    found = cases.read_case(case, folder)
    if IS_UPDATE:
        written = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
        (cases.FOLDER / case / cases.EXPECTED).write_text(written, encoding="utf-8")
    assert found == cases.expected_sessions(case)
    try:
        views = {view: list(cases.case_sessions(case, folder, view)) for view in VIEWS}
    except NotASession as refusal:
        fields = {name: getattr(refusal.problem, name) for name in refusal.problem.__struct_fields__}
        PROBLEM.validate(fields)
        return
    check_active_ids(case, views)
    for session in (*views["full"], *views["active"]):
        check_json_form(session)
        assert all(entry.at is None or entry.at.tzinfo is UTC for entry in session.timeline)


def check_active_ids(case: str, views: Mapping[View, Sequence[Session]]) -> None:
    """The active view holds the ids in `active.json`, or those of the full view where there is no such file."""
    full, active = ([cases.entry_ids(session) for session in views[view]] for view in VIEWS)
    if IS_UPDATE and active != full:
        (cases.FOLDER / case / cases.ACTIVE).write_text(json.dumps(active) + "\n", encoding="utf-8")
    assert active == (cases.expected_active_ids(case) or full)


def check_json_form(session: Session) -> None:
    """A session's JSON form is one line, valid by the schema, and decodes to the same session."""
    encoded = session_json(session)
    assert b"\n" not in encoded
    SESSION.validate(json.loads(encoded))
    assert decode_session(encoded) == session


def test_every_problem_code_has_a_case_or_a_test_on_disk() -> None:
    codes = set(TESTED_ON_DISK)
    for case in cases.NAMES:
        match cases.expected_sessions(case):
            case dict(refusal):
                codes.add(refusal["refused"])
            case sessions:
                codes |= {problem["code"] for session in sessions for problem in session["problems"]}
    assert codes == set(CODES)


@pytest.mark.parametrize("test", TESTED_ON_DISK.values())
def test_the_tests_on_disk_are_there(test: str) -> None:
    files = [
        Path(__file__).parent / name
        for name in (
            "test_bad_input.py",
            "synchronization/test_isolation.py",
            "synchronization/test_put_off.py",
            "search/test_unspoken.py",
        )
    ]
    assert any(f"def {test}(" in file.read_text(encoding="utf-8") for file in files)
