"""What is left behind when retold itself fails: a log for the report, readable by its owner only."""

import os
import platform
import sys
import traceback
from datetime import UTC, datetime

from retold import __version__


def crash_log(error: BaseException) -> str:
    """Write the log and return where it is; the traceback goes to stderr if it cannot be written."""
    from retold.config import retold_home

    told = "".join(traceback.format_exception(error))
    about = f"retold {__version__}, Python {platform.python_version()} on {sys.platform}\n\n{told}"
    folder = os.path.join(retold_home(os.environ), "logs")
    path = os.path.join(folder, f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.log")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as log:
            log.write(about)
    except OSError:
        sys.stderr.write(about)
        return "not written"
    return path
