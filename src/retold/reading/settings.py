"""Settings files of agents: JSON in which comments may stand."""

import re
from pathlib import Path
from typing import Any

from retold.model.problem import Problem, problem
from retold.reading.decoding import BOM, Undecodable, decode
from retold.reading.disk import Disk
from retold.reading.files import FileBytes, printable, read_bytes

MOST = 4 << 20
"""Bytes; what is larger is no settings file."""
COMMENT = r"//[^\r\n]*|/\*.*?\*/"
"""A comment in JSON, for patterns in which a dot matches the end of a line."""
# A string or a comment that does not end takes the rest of the text.
_STRING_OR_COMMENT = re.compile(rf'(?P<string>"(?:[^"\\]|\\.)*+"?)|{COMMENT}|/\*.*'.encode(), re.DOTALL)


def read_settings(path: Path, disk: Disk) -> dict[str, Any] | Problem:
    """Return what a settings file says: nothing, where there is none; a Problem, where it cannot be understood."""
    file = read_bytes(path, disk)
    if not isinstance(file, FileBytes):
        return {} if file.code == "missing-file" else file
    if len(file.data) > MOST:
        return problem("unexpected-shape", "too large for a settings file", printable(path))
    found = decode(without_comments(file.data.removeprefix(BOM)) or b"{}")
    if isinstance(found, Undecodable):
        return problem(found.code, found.message, printable(path))
    if type(found.value) is not dict:
        return problem("unexpected-shape", "the settings are no JSON object", printable(path))
    return found.value


def without_comments(text: bytes) -> bytes:
    """Return JSON without `//` and `/* */`; what stands in a string stays."""
    return _STRING_OR_COMMENT.sub(lambda found: found["string"] or b"", text).strip()
