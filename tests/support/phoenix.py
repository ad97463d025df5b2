"""Arize Phoenix, a real receiver of OpenTelemetry spans: installed outside the repository, run on loopback."""

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
    """Install Phoenix once into a virtual environment of its own, and return its program."""
    return install_program(cache, "phoenix", "arize-phoenix", VERSION)


class Phoenix:
    """A running Phoenix server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def send(self, content: bytes) -> None:
        """Send spans as an OpenTelemetry exporter does."""
        headers = {"Content-Type": "application/x-protobuf"}
        with urlopen(Request(f"{self.address}/v1/traces", content, headers), timeout=30) as answer:  # noqa: S310 - loopback only
            assert answer.status == 200

    def spans(self, at_least: int, patience: float = 60) -> list[Json]:
        """Return all spans once there are `at_least` of them: Phoenix stores spans after it has responded."""
        deadline = time.monotonic() + patience
        while True:
            found = list(self._all("spans"))
            if len(found) >= at_least or time.monotonic() > deadline:
                return found
            time.sleep(0.5)

    def sessions(self) -> list[Json]:
        """Return the sessions that Phoenix found in the spans."""
        return list(self._all("sessions"))

    def _all(self, kind: str) -> Iterator[Json]:
        cursor: str | None = ""
        while cursor is not None:
            asked = urlencode({"limit": PAGE, **({"cursor": cursor} if cursor else {})})
            with urlopen(f"{self.address}/v1/projects/default/{kind}?{asked}", timeout=30) as answer:  # noqa: S310 - loopback only
                page = json.load(answer)
            yield from page["data"]
            cursor = page["next_cursor"]


@contextmanager
def run_phoenix(program: Path, scratch: Path) -> Iterator[Phoenix]:
    """Run Phoenix on loopback until the block ends, without any request to other hosts."""
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
    nowhere = "http://127.0.0.1:9"  # nothing listens here, so outgoing requests fail
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
        with suppress(URLError, OSError), urlopen(f"{address}/healthz", timeout=5) as answer:  # noqa: S310 - loopback only
            if answer.status == 200:
                return
        time.sleep(0.5)
    raise UnavailableError(f"Phoenix {VERSION} did not start within {START_SECONDS} s")
