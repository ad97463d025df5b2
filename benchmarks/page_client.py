"""A client for pages on this machine, and a running `retold web`."""

import http.client
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from measure import Cost
from processes import RETOLD, cpu_of

OK = 200


class PageClient:
    """A client that keeps its connection open."""

    def __init__(self, process: int, port: int, cookie: str | None = None) -> None:
        self.process = process
        self._headers = {"Cookie": cookie} if cookie else {}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str) -> Cost:
        """Request a page and read all of it."""
        wall, cpu = time.perf_counter(), cpu_of(self.process)
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        response.read()
        cost = Cost(time.perf_counter() - wall, cpu_of(self.process) - cpu)
        if response.status != OK:
            raise RuntimeError(f"{path} was answered with {response.status}")
        return cost

    def peak(self) -> float | None:
        """Return the peak memory of the server in MB, or None if the system does not report it."""
        status = Path(f"/proc/{self.process}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:")), None)


@contextmanager
def run_page_server(env: Mapping[str, str]) -> Iterator[PageClient]:
    """Run `retold web`, and yield a client with its cookie."""
    command = [RETOLD, "web", "--no-browser", "--no-watch"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            link = urlsplit(server.stdout.readline().decode().strip() if server.stdout else "")
            connection = http.client.HTTPConnection("127.0.0.1", link.port or 0, timeout=30)
            connection.request("GET", f"{link.path}?{link.query}")
            cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
            yield PageClient(server.pid, link.port or 0, cookie)
        finally:
            server.terminate()
