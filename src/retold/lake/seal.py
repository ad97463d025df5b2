"""Digests that tell nothing to whoever does not know the key: a dataset is passed on, the key is not."""

import os
import secrets
from contextlib import suppress
from hashlib import blake2b

NAME = "dataset.key"
_SIZE = 32
_DIGEST = 12


class Seal:
    """Makes digests. What it is given may be guessed, a name or a password; so none can be compared without the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, *told: object) -> str:
        """Return the digest of some values: texts, bytes, numbers or nothing."""
        digest = blake2b(key=self._key, digest_size=_DIGEST)
        for one in told:
            data = one if isinstance(one, bytes) else repr(one).encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()


def kept_seal(home: str) -> Seal:
    """Return the seal of whoever keeps the archive in a folder, made if there is none.

    Where none can be kept there is a new one each time, and no dataset is known again.
    """
    path = os.path.join(home, NAME)
    try:
        with open(path, "rb") as file:
            key = file.read(_SIZE + 1)
    except FileNotFoundError:
        key = b""
    if len(key) != _SIZE:
        key = secrets.token_bytes(_SIZE)
        _keep(path, key)
    return Seal(key)


def _keep(path: str, key: bytes) -> None:
    draft = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
