"""The suite itself: Ctrl-C works in it however it was started, and only tests that type are run twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import TYPING_FIXTURES

CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
STARTS_CHILD = (
    f"import conftest, subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}], check=True)"
)


@pytest.mark.skipif(sys.platform == "win32", reason="no process inherits an ignored signal there")
def test_programs_can_be_interrupted_where_the_suite_was_started_to_ignore_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        without = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
        within = subprocess.run(
            [sys.executable, "-c", STARTS_CHILD],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert (without.stdout, within.stdout) == ("False\n", "True\n")


def test_only_tests_that_type_into_a_program_are_run_again(request: pytest.FixtureRequest) -> None:
    again = [item for item in request.session.items if item.get_closest_marker("flaky")]
    typing = [
        item
        for item in again
        if TYPING_FIXTURES & set(getattr(item, "fixturenames", ())) or item.get_closest_marker("real_cli")
    ]
    assert typing == again
