"""Pictures that came along: only those that a browser draws without running anything, and only if they are what they say."""

from base64 import b64decode, b64encode
from binascii import Error

from markupsafe import Markup

from retold.model.session import Attachment

LARGEST = 8_000_000
"""The largest picture that is put into a page, in bytes."""
_BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def picture(attachment: Attachment, told: str) -> Markup | None:
    """Return an attachment as a picture in the page itself; None for what is no picture or cannot be trusted to be one."""
    data = attachment.data
    if data is None or len(data) > LARGEST * 4 // 3 + 4:
        return None
    try:
        found = b64decode(data, validate=True)
    except (Error, ValueError):
        return None
    kind = _kind(found)
    if kind is None:
        return None
    source = f"data:{kind};base64,{b64encode(found).decode()}"
    return Markup('<p class="picture"><img src="{}" alt="{}"></p>').format(source, told)


def _kind(data: bytes) -> str | None:
    """Return what a picture is, by how it begins: what the transcript says of it may be anything."""
    for kind, beginning in _BEGINNINGS.items():
        if data.startswith(beginning) and (kind != "image/webp" or data[8:12] == b"WEBP"):
            return kind
    return None
