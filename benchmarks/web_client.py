"""A client for `retold web`: the times of its responses, one after the other and in parallel."""

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

OK = 200


class WebResponse(NamedTuple):
    """A response with its time."""

    status: int
    seconds: float
    body: bytes


class WebClient:
    """A client that keeps its connection open."""

    def __init__(self, port: int, cookie: str | None = None) -> None:
        self._headers = {"Cookie": cookie} if cookie else {}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str) -> WebResponse:
        """Request a page and read all of it."""
        start = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        return WebResponse(response.status, time.perf_counter() - start, body)

    def best(self, path: str, rounds: int) -> float:
        """Return the best time of a page."""
        responses = [self.get(path) for _ in range(rounds)]
        if any(response.status != OK for response in responses):
            raise RuntimeError(f"{path} was answered with {responses[0].status}")
        return min(response.seconds for response in responses)


class PageServer:
    """A running server."""

    def __init__(self, process: int, port: int, cookie: str) -> None:
        self._process, self._port, self._cookie = process, port, cookie

    def visitor(self) -> WebClient:
        """Return a client with the cookie."""
        return WebClient(self._port, self._cookie)

    def peak(self) -> float | None:
        """Return the peak memory in MB, or None if the system does not report it."""
        told = Path(f"/proc/{self._process}/status")
        lines = told.read_text().splitlines() if told.exists() else []
        return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:")), None)


@contextmanager
def run_page_server(env: Mapping[str, str]) -> Iterator[PageServer]:
    """Run `retold web`, and yield the server."""
    command = [RETOLD, "web", "--no-browser", "--no-watch"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            link = urlsplit(server.stdout.readline().decode().strip() if server.stdout else "")
            connection = http.client.HTTPConnection("127.0.0.1", link.port or 0, timeout=30)
            connection.request("GET", f"{link.path}?{link.query}")
            cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
            yield PageServer(server.pid, link.port or 0, cookie)
        finally:
            server.terminate()


def request_in_parallel(
    page: PageServer, readers: int, paths: Sequence[str], rounds: int
) -> list[WebResponse]:
    """Return the responses to parallel readers, each of whom requests all pages in another order."""

    def read(number: int) -> list[WebResponse]:
        visitor = page.visitor()
        turned = [*paths[number % len(paths) :], *paths[: number % len(paths)]]
        return [_get(visitor, path) for _ in range(rounds) for path in turned]

    with ThreadPoolExecutor(readers) as threads:
        return [response for responses in threads.map(read, range(readers)) for response in responses]


def _get(visitor: WebClient, path: str) -> WebResponse:
    try:
        return visitor.get(path)
    except (OSError, http.client.HTTPException) as error:
        return WebResponse(0, 0.0, str(error).encode())
