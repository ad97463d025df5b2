"""How somebody comes in: by a link, by the token, and not as another user of the machine."""

import os
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from retold.server import HostNames
from retold.web import auth, server
from retold.web.auth import LASTS, MOST, LoginTokens
from retold.web.server import PageAddress
from support.one_session import QUESTION, person_with_one_session
from support.person import Person, is_root
from support.web_server import PATIENCE, Visit, run_web_server

TOKEN = "quokka-" * 3
NOBODY = 65_534


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return person_with_one_session(tmp_path)


@pytest.fixture
def visit(ann: Person) -> Iterator[Visit]:
    with run_web_server(str(ann.archive)) as visit:
        yield visit


def link_of(visit: Visit) -> str:
    return visit.web.create_link().split(visit.host)[1]


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


# By a link -------------------------------------------------------------------------------------------------------


def test_a_link_works_for_a_minute() -> None:
    clock = Clock()
    entrance = LoginTokens(1, now=clock)
    early, late = entrance.create_link_key(), entrance.create_link_key()
    clock.at += LASTS
    assert entrance.is_valid_link(early)
    assert entrance.is_logged_in(entrance.log_in_by_link(early))
    clock.at += 0.1
    assert not entrance.is_valid_link(late)
    assert entrance.log_in_by_link(late) is None
    assert entrance.log_in_by_link(early) is None
    assert not entrance.is_valid_link(None)
    assert not entrance.is_logged_in(None)


def test_only_so_many_links_and_visitors_are_remembered() -> None:
    entrance = LoginTokens(1)
    links = [entrance.create_link_key() for _ in range(MOST + 1)]
    assert entrance.log_in_by_link(links[0]) is None
    visitors = [entrance.log_in_by_link(entrance.create_link_key()) for _ in range(MOST + 1)]
    assert [entrance.is_logged_in(one) for one in visitors] == [False, *[True] * MOST]


@pytest.mark.parametrize(
    "told",
    [
        {"Sec-Purpose": "prefetch"},
        {"Sec-Purpose": "prefetch;prerender", "Sec-Fetch-Site": "none"},
        {"Purpose": "prefetch"},
        {"X-Moz": "prefetch"},
        {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Dest": "image", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_what_is_loaded_ahead_or_by_a_script_uses_no_link_up(visit: Visit, told: dict[str, str]) -> None:
    link = link_of(visit)
    refused = visit.get(link, told)
    assert (refused.status, "set-cookie" in refused.headers) == (403, False)
    assert visit.ask("HEAD", link).status == 403
    person = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"}
    assert "set-cookie" in visit.get(link, person).headers


def test_no_key_but_that_of_a_link_leads_in(visit: Visit) -> None:
    assert visit.get("/enter").status == 200
    for key in ("", "x", "%00", "%ff", "a" * 5000):
        answered = visit.get(f"/enter?key={key}")
        assert ("set-cookie" in answered.headers, QUESTION in answered.text) == (False, False)
    assert visit.post("/enter", {"token": ""}).status == 403
    assert visit.post("/enter", {}).status == 403


def test_a_link_leads_in_also_when_strangers_crowd_the_door(visit: Visit) -> None:
    link = link_of(visit)
    for _ in range(1000):  # the allowance fills again meanwhile, and a machine may be slow
        if (last := visit.get("/enter?key=guess").status) == 429:
            break
    assert last == 429
    assert "set-cookie" in visit.get(link).headers


def test_two_pages_side_by_side_keep_their_visitors_apart(visit: Visit, ann: Person) -> None:
    with run_web_server(str(ann.archive)) as other:
        visit.enter()
        other.enter()
        assert visit.cookie is not None
        assert other.cookie is not None
        assert visit.cookie.partition("=")[0] != other.cookie.partition("=")[0]
        both = {"Cookie": f"{visit.cookie}; {other.cookie}"}
        for one in (visit, other):
            assert QUESTION in Visit(one.web).get("/", both).text
        moved = visit.cookie.replace(str(visit.web.port), str(other.web.port))
        assert Visit(other.web).get("/", {"Cookie": moved}).status == 403


# By the token ----------------------------------------------------------------------------------------------------


def test_a_server_for_others_does_not_start_without_a_token(ann: Person) -> None:
    for host in ("0.0.0.0", "::", "192.168.0.9", "127.0.0.2", ""):  # noqa: S104 - that is the test
        done = ann.run("web", "--host", host, "--no-browser", "--no-watch")
        assert (done.code, done.out) == (2, ""), host
        assert "can be reached from other machines: give --token" in done.err


class IdleServer:
    """Stands in for the server and takes no port."""

    def __init__(self, place: PageAddress) -> None:
        self.place = place

    def run(self, _begun: object) -> None:
        """Serve nobody."""


@pytest.mark.parametrize(
    ("token", "code"),
    [("x", 2), ("quokka-quokka-1", 2), ("quokka-quokka-12", 0), ("x" * 40, 2), (" " * 40, 2)],
)
def test_a_server_for_others_needs_a_token_that_cannot_be_guessed(
    ann: Person, monkeypatch: pytest.MonkeyPatch, token: str, code: int
) -> None:
    monkeypatch.setattr("retold.web.server.WebServer", IdleServer)
    done = ann.run("web", "--host", "0.0.0.0", "--token", token, "--no-browser", "--no-watch")  # noqa: S104 - that is the test
    assert done.code == code
    wanted = "too short: at least 16 characters" if len(token) < 16 else "too simple: at least 6 different"
    assert (f"the token is {wanted}" in done.err) == bool(code)


def test_others_come_in_with_the_token(ann: Person) -> None:
    with run_web_server(str(ann.archive), host="0.0.0.0", token=TOKEN, names=("Den.lan",)) as visit:  # noqa: S104
        assert 'name="token"' in visit.get("/enter").text
        entered = visit.post("/enter", {"token": TOKEN})
        assert {"httponly", "samesite=strict"} <= set(entered.headers["set-cookie"].lower().split("; "))
        visit.cookie = entered.headers["set-cookie"].partition(";")[0]
        for name in ("127.0.0.1", "localhost", "192.168.0.9", "[fe80::1]", "den.lan", "DEN.LAN"):
            assert QUESTION in visit.get("/", {"Host": f"{name}:{visit.web.port}"}).text, name
        for name in ("rebound.example", socket.gethostname() + ".example", "192.168.0.9.example", "[x]", "1"):
            assert visit.get("/", {"Host": f"{name}:{visit.web.port}"}).status == 421, name


def test_tokens_cannot_be_tried_one_after_another(ann: Person) -> None:
    with run_web_server(str(ann.archive), token=TOKEN) as visit:
        found = [visit.post("/enter", {"token": f"guess {number}"}) for number in range(6)]
        assert [one.status for one in found] == [403] * 5 + [429]
        assert visit.post("/enter", {"token": TOKEN}).status == 429
        assert "set-cookie" in visit.enter().headers


def test_tries_come_back_with_time() -> None:
    clock = Clock()
    entrance = LoginTokens(1, TOKEN, clock)
    assert [entrance.take_attempt() for _ in range(6)] == [True] * 5 + [False]
    clock.at += 12
    assert [entrance.take_attempt() for _ in range(2)] == [True, False]
    assert entrance.is_logged_in(entrance.log_in_by_token(TOKEN))
    for wrong in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\ud800"):
        assert entrance.log_in_by_token(wrong) is None
    assert LoginTokens(1).log_in_by_token("") is None


def test_a_form_that_is_none_is_refused_at_the_door(ann: Person) -> None:
    with run_web_server(str(ann.archive), token=TOKEN) as visit:
        head = {"Origin": f"http://{visit.host}", "Content-Type": "application/x-www-form-urlencoded"}
        assert visit.ask("POST", "/enter", head, b"\xff\xfe").status == 400
        with suppress(ConnectionError):  # what is too large is not read to its end
            assert visit.ask("POST", "/enter", head, b"token=" + b"x" * 70_000).status == 400
        assert visit.ask("POST", "/enter", {}, b"token=x").status == 403
        assert visit.ask("POST", "/enter", head | {"Origin": "http://example.org"}, b"token=x").status == 403


def test_the_usual_port_is_not_named() -> None:
    assert "127.0.0.1" in HostNames(80)
    assert "[::1]" in HostNames(80)
    assert "[::1]:80" in HostNames(80)
    assert "127.0.0.1" not in HostNames(8080)


# As another user -------------------------------------------------------------------------------------------------

ASK = """
import os, http.client, encodings.idna
os.setgid({user}); os.setuid({user})
link = http.client.HTTPConnection("127.0.0.1", {port}, timeout=20)
link.request("GET", {path!r})
answer = link.getresponse()
print(answer.status, answer.getheader("set-cookie"), answer.read().decode())
"""


def as_user(user: int, visit: Visit, path: str) -> str:
    code = ASK.format(user=user, port=visit.web.port, path=path)
    return subprocess.run(
        [sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.skipif(not is_root, reason="only root can act as another user")
def test_another_user_who_saw_the_link_does_not_get_in(visit: Visit) -> None:
    link = link_of(visit)
    told = as_user(NOBODY, visit, link)
    assert told.startswith("403 None Another user of this machine")
    assert as_user(os.getuid(), visit, link).startswith(f"200 retold-{visit.web.port}=")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells whose a connection is")
def test_the_system_tells_whose_a_connection_is(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    assert auth.has_socket_owners(visit.web.port)
    with socket.create_connection(("127.0.0.1", visit.web.port), timeout=PATIENCE) as link:
        ends = link.getsockname(), link.getpeername()
        assert not auth.is_other_user(*ends)
        assert not auth.is_other_user((f"::ffff:{ends[0][0]}", ends[0][1]), ends[1])
        assert not auth.is_other_user(*reversed(ends))
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        assert auth.is_other_user(*ends) is (own != 0)
        assert not auth.has_socket_owners(visit.web.port)


ROWS = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 1 1 0 20 4 30 10 -1
   2: 0100007F:C002 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   3: 0100007F:C003 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   4: broken
   5: 0000000000000000FFFF00000100007F:C004 0000000000000000FFFF00000100007F:1F90 01 0:0 0:0 0  1001 0 1
"""


@pytest.mark.skipif(sys.byteorder != "little", reason="the rows are those of a machine that is little-endian")
def test_a_closed_connection_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a socket that was closed the system says that it is root's."""
    table = tmp_path / "tcp"
    table.write_text(ROWS)
    tables = (str(table), str(tmp_path / "none"))
    monkeypatch.setattr(os, "getuid", lambda: 1000, raising=False)
    server = ("127.0.0.1", 0x1F90)
    found = [auth.is_other_user(("127.0.0.1", port), server, tables) for port in range(0xC001, 0xC006)]
    assert found == [True, True, False, True, False]
    assert auth.has_socket_owners(0x1F90, tables)
    assert not auth.is_other_user(None, server)


# The browser -----------------------------------------------------------------------------------------------------


def test_a_link_is_told_directly_where_no_other_user_gets_in_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def look(link: str) -> bool:
        opened.append(link)
        return True

    monkeypatch.setattr(webbrowser, "open", look)
    assert server.open_link("http://127.0.0.1:1/enter?key=k", is_safe_argument=True)
    assert opened == ["http://127.0.0.1:1/enter?key=k"]


def test_elsewhere_a_file_that_only_its_owner_reads_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, str]] = []

    def look(link: str) -> bool:
        file = Path(link.removeprefix("file://"))
        seen.append((file.stat().st_mode & 0o77, file.read_text()))
        seen.append((0, link))
        return True

    monkeypatch.setattr(webbrowser, "open", look)
    monkeypatch.setattr(server, "_LASTS", 0)
    assert server.open_link("http://127.0.0.1:1/enter?key=k", is_safe_argument=False)
    assert seen[0][0] == 0
    assert "url=http://127.0.0.1:1/enter?key=k" in seen[0][1]
    assert "key=k" not in seen[1][1]
    assert not Path(seen[1][1].removeprefix("file://")).exists()


LEAD = """
import sys, threading, time, webbrowser
from retold.web import server
opened = threading.Event()
webbrowser.open = lambda link: print(link, flush=True) or opened.set() or True
threading.Thread(target=server.open_link, args=("http://x/",), kwargs={"is_safe_argument": False}, daemon=True).start()
opened.wait(20)
"""


def test_the_file_goes_also_when_the_process_ends_early(ann: Person) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAD], check=True, capture_output=True, text=True, env=ann.env
    )
    link = done.stdout.strip()
    assert link.startswith("file://")
    assert not Path(link.removeprefix("file://")).exists()
