"""One page or download that is busy does not hold the server: others are answered meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from retold.archive.record import Record
from retold.web.answer import Answer, Asked, Page, Sent, Shown
from support.synced_archive import sync_archive
from support.web_server import PATIENCE, Visit, run_web_server


@pytest.mark.parametrize("path", ["/busy-page", "/busy-download"])
def test_a_busy_request_holds_no_other(tmp_path: Path, path: str) -> None:
    is_busy, gate = Event(), Event()

    def wait() -> bool:
        is_busy.set()
        return gate.wait(PATIENCE)

    def page(_asked: Asked, _record: Record) -> Answer:
        return Shown("missing.html", {"text": "opened" if wait() else "held"})

    def download(_asked: Asked, _record: Record) -> Answer:
        def pieces() -> Iterator[bytes]:
            yield b"opened" if wait() else b"held"

        return Sent("busy.txt", "text/plain", pieces())

    def quick(_asked: Asked, _record: Record) -> Answer:
        return Shown("missing.html", {"text": "quick"})

    pages = (Page("/busy-page", page), Page("/busy-download", download), Page("/", quick))
    (tmp_path / "home").mkdir()
    sync_archive(tmp_path / "archive", {"HOME": str(tmp_path / "home")})
    with run_web_server(str(tmp_path / "archive"), pages) as visit, ThreadPoolExecutor(1) as threads:
        visit.enter()
        busy = threads.submit(Visit.get, visit, path)
        try:
            assert is_busy.wait(PATIENCE)
            assert "quick" in visit.get("/").text
            assert not busy.done()
        finally:
            gate.set()
        assert "opened" in busy.result(PATIENCE).text
