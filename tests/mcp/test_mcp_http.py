"""The server over HTTP: for those who know the token, and for no page of a browser."""

import asyncio
import http.client
import json
import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from retold.mcp import http as guard
from retold.mcp.http import LARGEST, SESSIONS
from support.mcp_process import (
    PATIENCE,
    SLOW_PATTERN,
    TOKEN,
    VERSION,
    HttpServer,
    Json,
    answer_text,
    http_client,
    is_running,
    person_with_slow_text,
    process_commands,
    run_http_server,
)
from support.one_session import QUESTION, person_with_one_session
from support.person import Person

pytestmark = pytest.mark.slow

ACCEPT = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return person_with_one_session(tmp_path_factory.mktemp("http"))


@pytest.fixture(scope="module")
def server(person: Person) -> Iterator[HttpServer]:
    with run_http_server(person.env) as served:
        yield served


@pytest.fixture(scope="module")
def stranger_server(person: Person) -> Iterator[HttpServer]:
    """A server of its own for requests without the token: a server answers only so many of them at once."""
    with run_http_server(person.env) as served:
        yield served


def asked(
    server: HttpServer,
    body: bytes | Json | None = None,
    method: str = "POST",
    path: str = "/mcp",
    **headers: str,
) -> tuple[int, dict[str, str], str]:
    """Return status, headers and text of an answer; a header that is given empty is not sent."""
    usual = {
        "host": f"127.0.0.1:{server.port}",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "accept": ACCEPT,
    }
    told = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in told.items():
            if value:
                link.putheader(name, value)
        link.putheader("content-length", str(len(sent or b"")))
        link.endheaders(sent)
        answer = link.getresponse()
        return (
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            answer.read().decode(),
        )
    finally:
        link.close()


def greeting(number: int = 1) -> Json:
    about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "ann", "version": "1"}}
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": about}


PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def session(server: HttpServer) -> str:
    status, headers, _ = asked(server, greeting())
    assert status == 200
    return headers["mcp-session-id"]


# Clients ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_the_sdks_own_client_is_answered_in_every_era(server: HttpServer, mode: str) -> None:
    async def ask() -> None:
        async with http_client(server.address, mode=mode) as spoken:
            assert "search_history" in [tool.name for tool in (await spoken.list_tools()).tools]
            asked = [spoken.call_tool("search_history", {"query": "herons"}) for _ in range(20)]
            assert all(QUESTION in answer_text(answer) for answer in await asyncio.gather(*asked))

    asyncio.run(ask())


def test_a_session_is_ended_by_delete_and_then_unknown(server: HttpServer) -> None:
    name = session(server)
    assert asked(server, PING, mcp_session_id=name)[0] == 200
    assert asked(server, method="DELETE", mcp_session_id=name)[0] == 200
    assert asked(server, PING, mcp_session_id=name)[0] == 404
    assert asked(server, PING, mcp_session_id="made-up")[0] == 404


def test_get_opens_a_stream_of_a_session_only(server: HttpServer) -> None:
    assert asked(server, method="GET")[0] in (400, 405)
    assert asked(server, method="GET", mcp_session_id="made-up")[0] == 404
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {"authorization": f"Bearer {TOKEN}", "accept": ACCEPT, "mcp-session-id": session(server)}
    link.request("GET", "/mcp", headers=headers)
    answer = link.getresponse()
    assert (answer.status, answer.getheader("content-type", "").split(";")[0]) == (200, "text/event-stream")
    link.close()


# Who may not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS", "PUT"])
@pytest.mark.parametrize("path", ["/mcp", "/", "/elsewhere"])
def test_without_the_token_nothing_is_answered(stranger_server: HttpServer, method: str, path: str) -> None:
    status, headers, text = asked(stranger_server, greeting(), method, path, authorization="")
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert text == "Authorization: Bearer TOKEN is needed\n"


@pytest.mark.parametrize(
    "given",
    [
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ",
        "Bearer",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer{TOKEN}",
        f"Bearer {TOKEN.upper()}",
        "Bearer \xff\xfe",
    ],
)
def test_a_wrong_token_is_refused(stranger_server: HttpServer, given: str) -> None:
    assert asked(stranger_server, greeting(), authorization=given)[0] == 401


def test_two_tokens_are_none(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        lines = [f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 0"]
        lines += [f"Authorization: Bearer {TOKEN}", "Authorization: Bearer wrong", "", ""]
        link.sendall("\r\n".join(lines).encode())
        assert link.recv(100).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.1.evil.example:{port}"],
)
def test_another_name_is_refused(server: HttpServer, host: str) -> None:
    status, _, _ = asked(server, greeting(), host=host.format(port=server.port))
    assert status == (421 if host else 400)  # HTTP itself asks for a name


@pytest.mark.parametrize("host", ["localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_every_name_of_this_machine_for_itself_is_known(server: HttpServer, host: str) -> None:
    assert asked(server, greeting(), host=host.format(port=server.port).lower())[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "file://"]
)
def test_a_page_of_a_browser_is_refused(server: HttpServer, origin: str) -> None:
    status, headers, _ = asked(server, greeting(), origin=origin.format(port=server.port))
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_page_of_another_site_is_refused_though_it_hides_its_origin(server: HttpServer) -> None:
    assert asked(server, greeting(), sec_fetch_site="cross-site")[0] == 403
    assert asked(server, greeting(), sec_fetch_site="same-site")[0] == 403


def test_no_page_is_told_that_it_may_ask(server: HttpServer) -> None:
    own = f"http://127.0.0.1:{server.port}"
    status, headers, _ = asked(server, method="OPTIONS", origin=own, access_control_request_method="POST")
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


def test_strangers_who_keep_trying_are_slowed_down_and_others_are_not(person: Person) -> None:
    with run_http_server(person.env) as server:
        tried = [asked(server, greeting(), authorization="Bearer wrong")[0] for _ in range(60)]
        assert tried[0] == 401
        assert tried[-1] == 429
        assert tried.count(401) < guard.STRANGERS[0] + 25
        assert asked(server, greeting())[0] == 200


# How much ---------------------------------------------------------------------------------------------------------


def test_a_request_that_is_too_large_is_refused_however_it_is_sent(server: HttpServer) -> None:
    assert asked(server, b" " * (LARGEST + 1))[0] == 413
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", "accept": ACCEPT}
    link.request("POST", "/mcp", (b" " * 65_536 for _ in range(17)), headers, encode_chunked=True)
    assert link.getresponse().status == 413
    link.close()
    assert asked(server, greeting(), path="/mcp?" + "x" * 2_000)[0] == 414
    assert asked(server, greeting(), x_much="x" * 40_000)[0] == 431


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"garbage", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"[]", {}, 400),
        (b"", {}, 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', {}, 400),
        (b"{}", {"content_type": "text/plain"}, 400),
        (b"{}", {"accept": "text/html"}, 406),
        (b"{}", {"mcp_protocol_version": "1999-01-01"}, 400),
    ],
)
def test_what_is_no_message_is_refused_and_the_server_goes_on(
    server: HttpServer, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert asked(server, body, **headers)[0] == status
    assert asked(server, greeting())[0] == 200


def test_there_are_only_so_many_sessions_and_those_that_are_go_on(person: Person) -> None:
    with run_http_server(person.env) as server:
        opened = [session(server) for _ in range(SESSIONS)]
        assert asked(server, greeting())[0] == 503
        assert asked(server, PING, mcp_session_id=opened[0])[0] == 200
        assert asked(server, method="DELETE", mcp_session_id=opened[0])[0] == 200
        assert asked(server, greeting())[0] == 200


def test_only_this_machine_is_listened_to(server: HttpServer) -> None:
    with socket.socket() as other:
        other.settimeout(1)
        assert other.connect_ex(("127.0.0.2", server.port)) != 0


# The start and the end ----------------------------------------------------------------------------------------------


def test_a_token_is_made_and_told_once_on_stderr(person: Person) -> None:
    with run_http_server(person.env, token=None) as server:
        assert server.process.stderr is not None
        told = server.process.stderr.readline()
        token = told.removeprefix("retold: the token is ").removesuffix("; Ctrl-C ends\n")
        assert len(token) >= 43
        assert asked(server, greeting(), authorization=f"Bearer {token}")[0] == 200
        assert asked(server, greeting())[0] == 401
        _stop(server, signal.SIGTERM)
        assert server.process.stderr.read() == ""


def test_a_token_that_was_given_is_not_told(person: Person) -> None:
    with run_http_server(person.env) as server:
        _stop(server, signal.SIGTERM)
        assert server.process.stderr is not None
        assert TOKEN not in server.process.stderr.read()


@pytest.mark.skipif(os.name == "nt", reason="files have no such modes there")
def test_a_token_can_be_left_in_a_file_that_only_its_owner_reads(person: Person, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o644)
    with run_http_server(person.env, "--token-file", str(file), token=None) as server:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text(encoding="utf-8").strip()
        assert asked(server, greeting(), authorization=f"Bearer {token}")[0] == 200
        _stop(server, signal.SIGTERM)
        assert server.process.stderr is not None
        assert token not in server.process.stderr.read()
    assert [one.name for one in tmp_path.iterdir()] == ["token"]


@pytest.mark.parametrize(
    ("arguments", "token", "told"),
    [
        (("--port", "1"), "", "--port and --token-file are for --http"),
        (("--token-file", "x"), "", "--port and --token-file are for --http"),
        (("--http", "--port", "70000"), "", "70000 is no port"),
        (("--http", "--port", "-1"), "", "-1 is no port"),
        (("--http",), "short", "at least 16 characters"),
        (("--http",), "with spaces in its middle", "is no token"),
    ],
)
def test_what_cannot_be_served_is_wrong_usage(
    person: Person, arguments: tuple[str, ...], token: str, told: str
) -> None:
    done = person.spawn("mcp", *arguments, code=f"import os; os.environ['RETOLD_MCP_TOKEN'] = {token!r}")
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_a_port_that_is_taken_is_told(person: Person, server: HttpServer) -> None:
    done = person.spawn("mcp", "--http", "--port", str(server.port))
    assert done.code == 4
    assert "in use" in done.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_with_streams_open_and_a_scan_running(tmp_path: Path, number: signal.Signals) -> None:
    person = person_with_slow_text(tmp_path / "ann")
    with run_http_server(person.env) as server:
        headers = {"authorization": f"Bearer {TOKEN}", "accept": ACCEPT, "content-type": "application/json"}
        headers["mcp-session-id"] = session(server)
        params = {"name": "search_history", "arguments": {"query": SLOW_PATTERN, "mode": "regex"}}
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
        links = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE) for _ in range(2)]
        links[0].request("GET", "/mcp", headers=headers)
        links[1].request("POST", "/mcp", json.dumps(call), headers)
        scanner = _scanner(server)
        seconds = _stop(server, number)
        assert seconds < 4, seconds
        assert not is_running(scanner)
        for link in links:
            link.close()


def _scanner(server: HttpServer) -> int:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for line in process_commands():
            parent, number, *command = line.split()
            if parent == str(server.process.pid) and "retold.search.scan_job" in command:
                return int(number)
        time.sleep(0.02)
    raise AssertionError


def _stop(server: HttpServer, number: signal.Signals) -> float:
    began = time.monotonic()
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE) == 0
    return time.monotonic() - began
