"""What the server lets pass, asked by those who can send whatever they like."""

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from retold import server
from retold.archive.store import Store
from retold.web import app as web_request
from retold.web import auth
from retold.web.auth import STRANGERS
from retold.web.pages import PAGES
from retold.web.templating import Answer, Download, PageRequest, PageRoute, Redirect
from support.one_session import QUESTION, person_with_one_session
from support.web_server import PATIENCE, PageResponse, Visit, run_web_server

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SPLITTING = "x\r\nset-cookie: a=b\r\n\r\n<h1>\u2028“\ud800"


def _moved(asked: PageRequest, _: Store) -> Answer:
    return Redirect("/", {"q": asked.get("to") or SPLITTING})


def _sent(_asked: PageRequest, _: Store) -> Answer:
    return Download(f'a"; filename=b.exe{SPLITTING}', "text/plain; charset=utf-8", [b"file"])


def _changed(asked: PageRequest, _: Store) -> Answer:
    return Download("done", "text/plain", [asked.form.get("what", "").encode()])


def _broken(_asked: PageRequest, _: Store) -> Answer:
    raise KeyError("\x1b[31mevil words")


MADE = (
    PageRoute("/moved", _moved),
    PageRoute("/sent", _sent),
    PageRoute("/change", _changed, is_post=True),
    PageRoute("/broken", _broken),
)


@pytest.fixture
def archive(tmp_path: Path) -> str:
    return str(person_with_one_session(tmp_path).archive)


@pytest.fixture
def visit(archive: str) -> Iterator[Visit]:
    """Somebody who was let in, to pages among which are some that answer in every way there is."""
    with run_web_server(archive, (*PAGES, *MADE)) as visit:
        visit.enter()
        yield visit


def stranger(visit: Visit) -> Visit:
    return Visit(visit.web)


def raw(visit: Visit, text: bytes, patience: float = PATIENCE) -> bytes:
    """Send bytes; return all that comes back until the other side closes."""
    with socket.create_connection(("127.0.0.1", visit.web.port), timeout=patience) as link:
        link.sendall(text)
        answer = b""
        while piece := link.recv(65_536):
            answer += piece
        return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def shown(answered: PageResponse) -> bool:
    return QUESTION in answered.text


# By which name ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}"])
def test_its_own_names_are_known(visit: Visit, host: str) -> None:
    assert shown(visit.get("/", {"Host": host.format(visit.web.port)}))


@pytest.mark.parametrize(
    "host",
    [
        "", "127.0.0.1", "localhost", "127.0.0.1:1", "rebound.example:{}", "127.0.0.1.example:{}", "example.127.0.0.1:{}",
        "2130706433:{}", "0x7f000001:{}", "127.1:{}", "0.0.0.0:{}", "[::]:{}", "[::ffff:127.0.0.1]:{}", "localhost.:{}",
        "a@127.0.0.1:{}", "127.0.0.1:{}:{}", "127.0.0.1:{}/", "127.0.0.1:{},rebound.example", "::1:{}", "[::1", "192.168.0.9:{}",
    ],
)  # fmt: skip
def test_every_other_name_is_refused(visit: Visit, host: str) -> None:
    for path in ("/", "/enter", "/live", "/static/0/base.css", "/nowhere"):
        answered = visit.get(path, {"Host": host.replace("{}", str(visit.web.port))})
        assert answered.status == 421, (path, answered)


def test_without_a_name_or_with_two_nothing_is_answered(visit: Visit) -> None:
    port, cookie = visit.web.port, f"Cookie: {visit.cookie}\r\nConnection: close\r\n"
    one = f"Host: 127.0.0.1:{port}\r\n"
    assert status(raw(visit, f"GET / HTTP/1.1\r\n{one}{cookie}\r\n".encode())) == 200
    assert status(raw(visit, f"GET / HTTP/1.1\r\n{cookie}\r\n".encode())) == 400
    assert status(raw(visit, f"GET / HTTP/1.0\r\n{cookie}\r\n".encode())) == 421
    twice = f"GET / HTTP/1.1\r\n{one}Host: rebound.example\r\n{cookie}\r\n"
    assert status(raw(visit, twice.encode())) == 400
    whole = f"GET http://rebound.example/ HTTP/1.1\r\nHost: rebound.example\r\n{cookie}\r\n"
    assert status(raw(visit, whole.encode())) == 421


# From where ------------------------------------------------------------------------------------------------------


def elsewhere(port: int) -> list[str]:
    return [
        "null", "http://example.org", f"https://127.0.0.1:{port}", "http://127.0.0.1", f"http://127.0.0.1:{port + 1}",
        f"http://localhost:{port}", f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}.example.org", "", "file://",
    ]  # fmt: skip


def test_what_other_origins_ask_is_refused(visit: Visit) -> None:
    token = visit.form_token()
    for origin in elsewhere(visit.web.port):
        assert visit.get("/", {"Origin": origin}).status == 403, origin
        assert visit.post("/change", {"token": token}, {"Origin": origin}).status == 403, origin
    assert shown(visit.get("/", {"Origin": f"http://{visit.host}"}))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "SAME-ORIGIN", "same-origin, none"])
def test_what_a_browser_says_is_from_elsewhere_is_refused(visit: Visit, site: str) -> None:
    """Another port of this machine is the same site, and gets even a strict cookie sent."""
    told = {"Sec-Fetch-Site": site}
    assert visit.get("/", told).status == 403
    assert visit.get("/live", told).status == 403
    assert visit.get("/static/0/base.css", told).status == 403
    assert visit.post("/change", {"token": visit.form_token()}, told).status == 403
    assert shown(visit.get("/", {"Sec-Fetch-Site": "same-origin"}))


def test_a_form_of_a_page_without_referrer_is_known_by_its_site(visit: Visit) -> None:
    """Browsers call the origin of such a form null."""
    token = visit.form_token()
    own = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert visit.post("/change", {"token": token, "what": "all"}, own).text == "all"
    for site in ("none", "same-site", "cross-site", ""):
        assert visit.post("/change", {"token": token}, own | {"Sec-Fetch-Site": site}).status == 403
    assert (
        visit.post("/change", {"token": token}, own | {"Host": f"rebound.example:{visit.web.port}"}).status
        == 421
    )


def test_what_changes_something_needs_an_origin_a_cookie_and_the_token_of_the_page(visit: Visit) -> None:
    token = visit.form_token()
    assert visit.post("/change", {"token": token, "what": "all"}).text == "all"
    assert visit.post("/change", {"what": "all"}).status == 403
    assert visit.post("/change", {"token": ""}).status == 403
    assert visit.post("/change", {"token": "ä\ud800".encode(errors="replace").decode()}).status == 403
    body = f"token={token}".encode()
    for site in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert visit.ask("POST", "/change", site, body).status == 403, site
    assert stranger(visit).post("/change", {"token": token}).status == 403
    other = stranger(visit)
    other.enter()
    assert other.form_token() != token
    assert other.post("/change", {"token": token}).status == 403
    assert visit.get("/change").status == 404
    assert visit.post(f"/change?token={token}", {}).status == 403


# How -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "X"])
def test_only_the_usual_methods_are_answered(visit: Visit, method: str) -> None:
    answered = visit.ask(method, "/")
    assert answered.status == 405
    assert str(visit.cookie) not in answered.text


def test_a_tunnel_is_not_dug(visit: Visit) -> None:
    asked = f"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: {visit.host}\r\nCookie: {visit.cookie}\r\n\r\n"
    assert status(raw(visit, asked.encode())) == 405


def test_an_upgrade_is_not_made(visit: Visit) -> None:
    asked = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "AAAA",
        "Sec-WebSocket-Version": "13",
    }
    assert visit.get("/", asked).status == 200
    assert stranger(visit).get("/", asked).status == 403


def test_what_is_too_long_goes_no_further(visit: Visit) -> None:
    assert visit.get("/?q=" + "x" * 9_000).status == 414
    assert visit.get("/?" + "&".join(f"a{number}=1" for number in range(100))).status == 400
    assert visit.get("/", {"X-Long": "x" * 40_000}).status == 431
    token = visit.form_token()
    with suppress(ConnectionError):  # what is too large is not read to its end
        assert visit.post("/change", {"token": token, "what": "x" * 70_000}).status == 400
    fields = {f"a{number}": "1" for number in range(100)}
    assert visit.post("/change", {"token": token, **fields}).status == 400
    head = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{visit.host}"}
    assert visit.ask("POST", "/change", head, b"\xff\xfe=\x80&token=%ff%fe").status in (400, 403)


def test_a_body_without_end_is_not_read_to_its_end(visit: Visit) -> None:
    head = f"POST /change HTTP/1.1\r\nHost: {visit.host}\r\nOrigin: http://{visit.host}\r\nCookie: {visit.cookie}\r\n"
    with socket.create_connection(("127.0.0.1", visit.web.port), timeout=PATIENCE) as link:
        link.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        with pytest.raises(OSError, match=r"."):  # noqa: PT012 - the other side closes at some time
            while sent < 100_000_000:
                link.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                sent += 4096
    assert sent < 20_000_000
    assert shown(visit.get("/"))


def test_the_slow_and_the_silent_keep_nobody_waiting(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 2.0)
    monkeypatch.setattr(web_request, "PATIENCE", 2.0)
    place = ("127.0.0.1", visit.web.port)
    starts = [
        b"", b"GET / HT", f"GET / HTTP/1.1\r\nHost: {visit.host}\r\nX-Slow: ".encode(),
        (f"POST /change HTTP/1.1\r\nHost: {visit.host}\r\nOrigin: http://{visit.host}\r\nCookie: {visit.cookie}\r\n"
         "Content-Length: 10\r\n\r\nab").encode(),
    ]  # fmt: skip
    slow = [socket.create_connection(place, timeout=PATIENCE) for _ in range(40) for _ in starts]
    for number, link in enumerate(slow):
        with suppress(ConnectionError):  # on a slow machine it was let go already
            link.sendall(starts[number % len(starts)])
    assert shown(visit.get("/"))
    for link in slow:
        with link:
            assert outcome(link) in (0, 400)


def outcome(link: socket.socket) -> int:
    """What somebody is told who was too slow: nothing, if the connection was cut off; raises TimeoutError if it was not."""
    try:
        return status(link.recv(65_536) or b"")
    except ConnectionError:
        return 0


def test_those_who_wait_longest_make_room(visit: Visit) -> None:
    """As many connections as a stranger likes, and none of them is in the way."""
    place = ("127.0.0.1", visit.web.port)
    idle = [socket.create_connection(place, timeout=PATIENCE) for _ in range(server.MOST_CONNECTIONS + 40)]
    assert shown(visit.get("/"))
    idle[0].settimeout(server.PATIENCE / 2)  # by itself it would be let go later
    assert outcome(idle[0]) == 0
    for link in idle:
        link.close()


def until_refused(visit: Visit, path: str, headers: Mapping[str, str] | None = None) -> list[int]:
    """Ask until it is too much; that takes longer on a slow machine, on which the allowance fills meanwhile."""
    found: list[int] = []
    while 429 not in found and len(found) < 1000:
        found.append(visit.get(path, headers).status)
    return found


def test_strangers_are_limited_without_shutting_out_others(visit: Visit) -> None:
    other = stranger(visit)
    found = until_refused(other, "/")
    assert found[-1] == 429
    assert set(found[:-1]) == {403}
    assert len(found) > STRANGERS[0] - 5
    assert until_refused(other, "/static/0/base.css")[-1] == 429
    assert shown(visit.get("/"))
    other.enter()
    assert shown(other.get("/"))


def test_what_others_ask_in_the_name_of_a_visitor_is_not_at_their_expense(
    archive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "KNOWN", (10, 0.001))
    with run_web_server(archive) as visit:
        visit.enter()
        assert until_refused(visit, "/", {"Sec-Fetch-Site": "same-site"})[-1] == 429
        assert shown(visit.get("/"))
        assert until_refused(visit, "/")[-1] == 429


# What is answered ------------------------------------------------------------------------------------------------


def test_every_answer_tells_the_browser_the_same(visit: Visit) -> None:
    style = re.search(r'href="(/static/[^"]+css)"', visit.get("/").text)
    assert style is not None
    other = stranger(visit)
    answers = [
        visit.get("/"), visit.get("/nowhere"), visit.get("/sent"), visit.get("/moved"), visit.get(style[1]), visit.ask("HEAD", "/"),
        visit.get("/enter"), other.get("/"), other.get("/enter?key=x"), other.get(style[1]), other.get("/nowhere"),
        visit.get("/", {"Host": "rebound.example"}), visit.get("/", {"Origin": "null"}), visit.ask("PUT", "/"),
    ]  # fmt: skip
    for answered in answers:
        told = answered.headers
        assert told["content-security-policy"] == POLICY
        assert told["referrer-policy"] == "no-referrer"
        assert told["x-content-type-options"] == "nosniff"
        assert told["x-frame-options"] == "DENY"
        assert told["cross-origin-opener-policy"] == told["cross-origin-resource-policy"] == "same-origin"
        assert told["cache-control"] == "no-store" or answered is answers[4] or answered is answers[9]
        assert not {
            name for name in told if name.startswith("access-control-") or name in ("set-cookie", "server")
        }


def test_a_page_that_is_not_there_is_told_as_one(visit: Visit) -> None:
    for path in (
        "/nowhere",
        "/health/",
        "//example.org/",
        "/static/",
        "/session/../..",
        "/%2e%2e/",
        "/\x7f%00",
    ):
        answered = visit.get(quote(path, safe="/%"))
        assert (answered.status, "There is no such page." in answered.text) == (404, True), path
    assert visit.post("/nowhere", {}).status == 404
    told = stranger(visit).get("/nowhere")
    assert (told.status, "<" in told.text) == (403, False)
    assert stranger(visit).get("/static/a/b/c").text == "Not found\n"


def test_no_file_is_opened_by_a_name(visit: Visit) -> None:
    for name in (
        "..%2f..%2fapp.py",
        "%2fetc%2fpasswd",
        "../app.py",
        "..",
        "base.css%00",
        "C:%5cx",
        "....//app.py",
    ):
        answered = visit.get(f"/static/0/{name}")
        assert answered.status == 404, name
        assert "import" not in answered.text


def test_words_of_a_request_stay_in_their_place_in_an_answer(visit: Visit) -> None:
    moved = visit.get("/moved")
    assert moved.status == 303
    assert moved.headers["location"].startswith("/?q=x%0D%0Aset-cookie")
    assert visit.get("/moved?to=" + quote("\r\nx: y")).headers["location"] == "/?q=%0D%0Ax%3A+y"
    sent = visit.get("/sent")
    assert sent.headers["content-disposition"].startswith("attachment; filename*=UTF-8''a%22%3B%20filename")
    assert {"set-cookie", "x"}.isdisjoint(moved.headers.keys() | sent.headers.keys())


def test_a_bug_of_ours_is_told_where_the_server_runs_without_the_words_of_others(
    visit: Visit, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = visit.get("/broken")
    assert (answered.status, "evil" in answered.text) == (500, False)
    told = capsys.readouterr().err
    assert told.endswith("retold: internal error: KeyError\n")
    assert "_broken" in told
    assert "\x1b" not in told
    assert shown(visit.get("/"))


def test_cookies_of_other_servers_are_not_in_the_way(visit: Visit) -> None:
    own, visit.cookie = visit.cookie, None
    assert own is not None
    for others in ('{"a": [1]}', "a b c=;;; =x; \x01=", "retold-1=zzz; retold-look=dark", 'x="'):
        told = {"Cookie": f"{others}; {own}".encode("latin-1").decode("latin-1")}
        assert shown(visit.get("/", told)), others


def test_many_at_once_are_all_answered(visit: Visit) -> None:
    found: list[bool] = []

    def ask() -> None:
        found.append(shown(visit.get("/")))

    threads = [Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == [True] * 50
