"""Arize Phoenix, a real receiver of OpenTelemetry spans: installed once, outside the repository, and run on loopback."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from support.pip_programs import install_program
from support.real_gemini import UnavailableError, free_port

VERSION = "20.26.1"
START_SECONDS = 100
PAGE = 1000
Json = dict[str, Any]


def install_phoenix(cache: Path) -> Path:
    """Return the program, in a virtual environment of its own: it needs much, and in versions of its own."""
    return install_program(cache, "phoenix", "arize-phoenix", VERSION)


class Phoenix:
    """A receiver that runs."""

    def __init__(self, address: str) -> None:
        self.address = address

    def send(self, content: bytes) -> None:
        """Send spans, as an exporter of OpenTelemetry does."""
        headers = {"Content-Type": "application/x-protobuf"}
        with urlopen(Request(f"{self.address}/v1/traces", content, headers), timeout=30) as answer:  # noqa: S310 - ours
            assert answer.status == 200

    def spans(self, at_least: int, patience: float = 60) -> list[Json]:
        """Return all spans, once so many are there: they are taken in behind the answer."""
        deadline = time.monotonic() + patience
        while True:
            found = list(self._all("spans"))
            if len(found) >= at_least or time.monotonic() > deadline:
                return found
            time.sleep(0.5)

    def sessions(self) -> list[Json]:
        """Return the conversations that it found in the spans."""
        return list(self._all("sessions"))

    def _all(self, kind: str) -> Iterator[Json]:
        cursor: str | None = ""
        while cursor is not None:
            asked = urlencode({"limit": PAGE, **({"cursor": cursor} if cursor else {})})
            with urlopen(f"{self.address}/v1/projects/default/{kind}?{asked}", timeout=30) as answer:  # noqa: S310 - ours
                page = json.load(answer)
            yield from page["data"]
            cursor = page["next_cursor"]


@contextmanager
def run_phoenix(program: Path, scratch: Path) -> Iterator[Phoenix]:
    """Run it on loopback, without anything that would call elsewhere, until nobody needs it."""
    port = free_port()
    with (scratch / "phoenix.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve"], env=_settings(scratch, port), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(address, process)
            yield Phoenix(address)
        finally:
            process.kill()
            process.wait()


def _settings(scratch: Path, port: int) -> Mapping[str, str]:
    nowhere = "http://127.0.0.1:9"  # whatever would go out ends here
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "PHOENIX_WORKING_DIR": str(scratch / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(URLError, OSError), urlopen(f"{address}/healthz", timeout=5) as answer:  # noqa: S310 - ours
            if answer.status == 200:
                return
        time.sleep(0.5)
    raise UnavailableError(f"Phoenix {VERSION} did not start within {START_SECONDS} s")
