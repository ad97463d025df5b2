"""Who gets into the local page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.one_session import person_with_one_session
from support.web_server import Visit, run_web_server


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    with run_web_server(str(person_with_one_session(tmp_path).archive)) as visit:
        yield visit


def test_a_link_is_exchanged_for_a_cookie_once(visit: Visit) -> None:
    link = visit.web.create_link().split(visit.host)[1]
    assert visit.get("/").status == 403
    entered = visit.get(link)
    assert entered.status == 200
    name, _, rest = entered.headers["set-cookie"].partition("=")
    assert name == f"retold-{visit.web.port}"
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in rest.split(";")[1:]}
    again = visit.get(link)
    assert again.status == 403
    assert "set-cookie" not in again.headers
    visit.cookie = entered.headers["set-cookie"].partition(";")[0]
    shown = visit.get("/")
    assert shown.status == 200
    assert "Where do herons nest?" in shown.text


def test_a_name_that_was_made_to_lead_here_is_refused(visit: Visit) -> None:
    visit.enter()
    assert visit.get("/", {"Host": f"rebound.example:{visit.web.port}"}).status == 421
    assert visit.get("/", {"Host": f"localhost:{visit.web.port}"}).status == 200
