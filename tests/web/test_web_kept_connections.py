"""A connection that is kept for further requests ends when the next one does not arrive in time."""

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from retold import server
from support.one_session import person_with_one_session
from support.web_server import PATIENCE, Visit, run_web_server

BOUND = 4.0
"""Seconds."""


@pytest.fixture
def visit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    with run_web_server(str(person_with_one_session(tmp_path).archive)) as visit:
        visit.enter()
        monkeypatch.setattr(server, "PATIENCE", BOUND)
        yield visit


def ask(link: http.client.HTTPConnection, visit: Visit) -> int:
    """Send a whole request and read its answer."""
    link.request("GET", "/static/none", headers={"Cookie": visit.cookie or ""})
    answer = link.getresponse()
    answer.read()
    assert answer.getheader("connection") != "close"
    return answer.status


def wait_until_closed(link: socket.socket) -> None:
    with suppress(ConnectionResetError):
        while link.recv(1 << 16):
            pass


@pytest.mark.parametrize("later", ["G", "GET / HTTP/1.1\r\nHost: "], ids=["byte", "lines"])
def test_half_a_request_does_not_hold_a_connection(visit: Visit, later: str) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", visit.web.port, timeout=PATIENCE)) as link:
        began = time.monotonic()
        assert ask(link, visit) == 404
        link.sock.sendall(later.encode())
        wait_until_closed(link.sock)
        assert BOUND * 0.9 < time.monotonic() - began < PATIENCE / 2


def test_a_connection_that_goes_on_asking_is_kept(visit: Visit) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", visit.web.port, timeout=PATIENCE)) as link:
        assert ask(link, visit) == 404
        own = link.sock
        for _ in range(4):
            time.sleep(BOUND * 0.3)
            assert ask(link, visit) == 404
        assert link.sock is own
