"""The JSON form of a session as one value."""

from retold.model.serialization import encode_session
from retold.model.session import Session


def session_json(session: Session) -> bytes:
    """Return a session with its timeline, on one line."""
    return b"".join(encode_session(session))
