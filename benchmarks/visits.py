"""A server on this machine, and visits to it: how long it takes to answer, one after the other and all at once."""

import http.client
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from processes import RETOLD

GOOD = 200


class Answer(NamedTuple):
    """What came back, and after how long."""

    status: int
    seconds: float
    body: bytes


class Visitor:
    """Somebody who keeps a connection open."""

    def __init__(self, port: int, cookie: str | None = None) -> None:
        self._headers = {"Cookie": cookie} if cookie else {}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str) -> Answer:
        """Ask for a page, and wait for all of it."""
        start = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        return Answer(response.status, time.perf_counter() - start, body)

    def best(self, path: str, rounds: int) -> float:
        """Return the shortest time that a page took."""
        answers = [self.get(path) for _ in range(rounds)]
        if any(answer.status != GOOD for answer in answers):
            raise RuntimeError(f"{path} was answered with {answers[0].status}")
        return min(answer.seconds for answer in answers)


class Page:
    """Our server while it runs."""

    def __init__(self, process: int, port: int, cookie: str) -> None:
        self._process, self._port, self._cookie = process, port, cookie

    def visitor(self) -> Visitor:
        """Return somebody who was let in."""
        return Visitor(self._port, self._cookie)

    def peak(self) -> float | None:
        """Return the megabytes that it took at most; None where the system does not tell."""
        told = Path(f"/proc/{self._process}/status")
        lines = told.read_text().splitlines() if told.exists() else []
        return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:")), None)


@contextmanager
def served(env: Mapping[str, str]) -> Iterator[Page]:
    """Run `retold web` meanwhile."""
    command = [RETOLD, "web", "--no-browser", "--no-watch"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            link = urlsplit(server.stdout.readline().decode().strip() if server.stdout else "")
            connection = http.client.HTTPConnection("127.0.0.1", link.port or 0, timeout=30)
            connection.request("GET", f"{link.path}?{link.query}")
            cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
            yield Page(server.pid, link.port or 0, cookie)
        finally:
            server.terminate()


def at_once(page: Page, readers: int, paths: Sequence[str], rounds: int) -> list[Answer]:
    """Return what many readers got who asked at the same time, each for all pages, beginning with another."""

    def read(number: int) -> list[Answer]:
        visitor = page.visitor()
        turned = [*paths[number % len(paths) :], *paths[: number % len(paths)]]
        return [_answered(visitor, path) for _ in range(rounds) for path in turned]

    with ThreadPoolExecutor(readers) as threads:
        return [answer for answers in threads.map(read, range(readers)) for answer in answers]


def _answered(visitor: Visitor, path: str) -> Answer:
    try:
        return visitor.get(path)
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, 0.0, str(error).encode())
