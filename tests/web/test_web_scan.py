"""Letters and patterns that are looked for in all text: by other processes, a few at a time, and not for ever."""

import base64
import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from subprocess import run

import pytest

from retold.search.scan_pool import MOST_SCANS, ScanPool
from retold.web import app
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person
from support.web_server import Visit, run_web_server

NEVER_ENDING = "/?q=" + "%28a%2B%29%2B%24" + "&mode=regex"
"""`(a+)+$`: it takes twice as long for each further letter."""
PATIENCE = 20
"""Seconds; left to itself, a scan goes on for longer."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = GeminiHome(tmp_path_factory.mktemp("scans") / "ann")
    home.lines(
        "den", 1, 1, [user("u1", 1, "a" * 60 + "b"), gemini("g1", 2, "That is a long word.")], kind="main"
    )
    home.lines("den", 2, 2, [user("u2", 1, "baa"), gemini("g2", 2, "So say sheep.")], kind="main")
    person = Person(home.folder)
    person.sync()
    return person.archive


@pytest.fixture
def visit(archive: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Visit]:
    monkeypatch.setattr(app, "ScanPool", partial(ScanPool, time_limit=request.param))
    with run_web_server(str(archive)) as visit:
        visit.enter()
        yield visit


def scanners() -> list[str]:
    """Ids and command lines of the processes that scan for this one."""
    command = ["ps", "-eo", "ppid=,pid=,args="]
    listed = run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    own = [line.strip().partition(" ") for line in listed]
    return [told for parent, _, told in own if parent == str(os.getpid()) and "scan_job" in told]


def wait_until_scanning(number: int, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while len(scanners()) != number:
        assert time.monotonic() < end, scanners()
        time.sleep(0.02)


@pytest.mark.parametrize("visit", [4.0], indirect=True)
def test_a_pattern_that_never_ends_is_stopped_and_what_was_found_is_shown(visit: Visit) -> None:
    began = time.monotonic()
    text = visit.get(NEVER_ENDING).text
    assert 3.9 < time.monotonic() - began < PATIENCE
    assert "was stopped: below is what was found until then" in text
    assert "<mark>aa</mark>" in text
    assert scanners() == []


@pytest.mark.parametrize("visit", [6.0], indirect=True)
def test_other_pages_answer_while_patterns_are_looked_for(visit: Visit) -> None:
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(visit.get, NEVER_ENDING) for _ in range(4)]
        wait_until_scanning(MOST_SCANS)
        running = scanners()
        assert all(visit.get(path).status == 200 for path in ("/", "/?q=sheep", "/palette?q=she") * 3)
        assert scanners() == running, "the pages had to wait for the scans"
        texts = [one.result().text for one in asked]
    stopped = ["was stopped" in text for text in texts]
    assert sum(stopped) >= MOST_SCANS
    assert all("was stopped" in text or "try again in a moment" in text for text in texts)
    assert scanners() == []


@pytest.mark.parametrize("visit", [60.0], indirect=True)
def test_a_scan_ends_when_nobody_waits_for_it_any_more(visit: Visit) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", visit.web.port)
    connection.request("GET", NEVER_ENDING, headers={"Cookie": visit.cookie or ""})
    wait_until_scanning(1)
    connection.close()
    wait_until_scanning(0, 5)  # a scanner that nobody ends goes on for 7 seconds


@pytest.mark.parametrize("visit", [60.0], indirect=True)
def test_what_is_looked_for_is_not_in_the_list_of_processes(visit: Visit) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", visit.web.port)
    connection.request("GET", NEVER_ENDING, headers={"Cookie": visit.cookie or ""})
    wait_until_scanning(1)
    (command,) = scanners()
    connection.close()
    assert "a+" not in command
    assert command.endswith("-m retold.search.scan_job")


def test_a_scanner_whose_server_died_ends_by_itself(archive: Path) -> None:
    code = (
        "from retold.search import scan_job; scan_job.TIME_LIMIT, scan_job._LATER = 2.0, 2.0; scan_job.main()"
    )
    folder = base64.b64encode(bytes(archive)).decode()
    job = {"text": "(a+)+$", "is_regex": True, "filters": {}, "limit": 9, "folder": folder}
    done = run(
        [sys.executable, "-c", code],
        input=json.dumps(job).encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b""
    assert b"baa" in done.stdout


@pytest.mark.parametrize("visit", [PATIENCE], indirect=True)
def test_nothing_is_imported_from_the_folder_that_it_is_started_in(
    visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "retold").mkdir()
    (tmp_path / "retold" / "__init__.py").write_text("open('sprung', 'w').close()\n")
    source = str(Path(sys.modules["retold"].__path__[0]).parent)
    monkeypatch.setenv("PYTHONPATH", source)
    monkeypatch.chdir(tmp_path)
    assert "So say sheep" in visit.get("/?q=say+sheep&mode=letters").text.replace("<mark>", "").replace(
        "</mark>", ""
    )
    assert not (tmp_path / "sprung").exists()
