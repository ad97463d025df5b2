"""`retold web` as a process: how it begins, how it ends, and what ends with it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from support.gemini_home import gemini, metadata, session_id, user
from support.one_session import QUESTION, person_with_one_session
from support.person import Person
from support.web_server import PATIENCE, run_web_server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return person_with_one_session(tmp_path)


@contextmanager
def running(ann: Person, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start it; yield the process and the link that it tells."""
    process = ann.start("web", "--no-browser", *arguments)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def children(pid: int) -> list[int]:
    told = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = (line.split() for line in told.stdout.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


def is_running(pid: int) -> bool:
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(told.stdout.strip()) and not told.stdout.startswith("Z")


def within(seconds: float, claim: object) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if callable(claim) and claim():
            return True
        time.sleep(0.05)
    return False


def entered(link: str) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    return connection, {"Cookie": str(answer.getheader("set-cookie")).partition(";")[0]}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quickly_and_quietly_with_a_page_still_open(ann: Person, how: signal.Signals) -> None:
    with running(ann) as (process, link):
        connection, cookie = entered(link)
        connection.request("GET", "/live", headers=cookie)
        live = connection.getresponse()
        assert live.readline() == b"retry: 2000\n"
        (watcher,) = children(process.pid)
        process.send_signal(how)
        _, err = process.communicate(timeout=PATIENCE)
        live.close()
        connection.close()
        assert process.returncode == 0
        assert "Traceback" not in err
        assert err.splitlines()[1:] == []
        assert within(PATIENCE, lambda: not is_running(watcher))


def test_the_watcher_ends_with_the_server_however_that_ends(ann: Person) -> None:
    with running(ann) as (process, link):
        connection, _ = entered(link)
        connection.close()
        (watcher,) = children(process.pid)
        assert is_running(watcher)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        assert within(PATIENCE, lambda: not is_running(watcher))


def test_the_watcher_imports_nothing_from_the_folder_it_is_started_in(ann: Person, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    (trap / "retold").mkdir(parents=True)
    (trap / "retold" / "__init__.py").write_text("open('sprung', 'w').close()\n")
    start = [sys.executable, "-P", "-c", "from retold.cli.main import main; main(['web', '--no-browser'])"]
    env = ann.env | {"PYTHONPATH": str(Path(sys.modules["retold"].__path__[0]).parent)}
    with subprocess.Popen(
        start, cwd=trap, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as web:
        assert web.stdout is not None
        entered(web.stdout.readline().strip())[0].close()
        assert within(PATIENCE, lambda: children(web.pid))
        web.send_signal(signal.SIGINT)
        web.wait(PATIENCE)
    assert not (trap / "sprung").exists()


def test_readers_are_answered_while_a_sync_writes(ann: Person) -> None:
    """Fifty at once, as long as another process archives one conversation after the other."""
    chats = ann.folder / ".gemini" / "tmp" / "den" / "chats"
    for number in range(2, 60):
        rows = [
            metadata(number, 1, kind="main"),
            user(f"u{number}", 1, "said " * 400),
            gemini(f"g{number}", 2, "heard " * 400),
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (chats / f"session-2026-03-01T09-01-{session_id(number)[:8]}.jsonl").write_text(lines)
    wrong: list[object] = []
    with run_web_server(str(ann.archive)) as visit:
        visit.enter()

        def read() -> None:
            for path in ("/", "/enter", "/"):
                answered = visit.get(path)
                if answered.status not in (200, 429):
                    wrong.append(answered)
                if path == "/" and answered.status == 200 and "data-row" not in answered.text:
                    wrong.append(answered)

        readers = [Thread(target=read) for _ in range(50)]
        writer = ann.start("sync")
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(60)
        _, err = writer.communicate(timeout=60)
        assert (writer.returncode, wrong) == (0, []), err
        assert QUESTION in visit.get("/").text or "said" in visit.get("/").text
