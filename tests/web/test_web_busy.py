"""One page or download that is busy does not hold the server: others are answered meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from retold.archive.store import Store
from retold.web.templating import Answer, Download, PageRequest, PageRoute, TemplatePage
from support.synced_archive import sync_archive
from support.web_server import PATIENCE, Visit, run_web_server


@pytest.mark.parametrize("path", ["/busy-page", "/busy-download"])
def test_a_busy_request_holds_no_other(tmp_path: Path, path: str) -> None:
    is_busy, gate = Event(), Event()

    def wait() -> bool:
        is_busy.set()
        return gate.wait(PATIENCE)

    def page(_asked: PageRequest, _record: Store) -> Answer:
        return TemplatePage("missing.html", {"text": "opened" if wait() else "held"})

    def download(_asked: PageRequest, _record: Store) -> Answer:
        def pieces() -> Iterator[bytes]:
            yield b"opened" if wait() else b"held"

        return Download("busy.txt", "text/plain", pieces())

    def quick(_asked: PageRequest, _record: Store) -> Answer:
        return TemplatePage("missing.html", {"text": "quick"})

    pages = (PageRoute("/busy-page", page), PageRoute("/busy-download", download), PageRoute("/", quick))
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
