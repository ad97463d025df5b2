"""Whose a connection from this machine is, as far as the system tells: Linux does."""

import ipaddress
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""Where Linux lists the sockets of a machine, with their owners."""
_ESTABLISHED, _LISTENS = "01", "0A"
_FIELDS = 8
Place = tuple[str, int]
"""Address and port."""


class _Socket(msgspec.Struct, frozen=True):
    here: Place
    there: Place
    state: str
    owner: int


def is_told(port: int, tables: Sequence[str] = TABLES) -> bool:
    """Tell whether the system says whose a socket is, as it does of ours that listens on a port."""
    return any(
        one.state == _LISTENS and one.here[1] == port and one.owner == os.getuid() for one in _sockets(tables)
    )


def is_of_others(client: Place | None, server: Place | None, tables: Sequence[str] = TABLES) -> bool:
    """Tell whether a visitor is another user of this machine.

    Whoever runs the server may come, and root, who can see everything anyway. Of a socket that was closed
    nobody can tell any more whose it was.
    """
    if client is None or server is None:
        return False
    ends = _plain(*client), _plain(*server)
    for one in _sockets(tables):
        if (one.here, one.there) == ends:
            return one.state != _ESTABLISHED or one.owner not in (0, os.getuid())
    return False


def _sockets(tables: Sequence[str]) -> Iterator[_Socket]:
    for table in tables:
        with suppress(OSError), open(table, encoding="ascii") as rows:
            next(rows, None)  # names of the columns
            for row in rows:
                fields = row.split()
                if len(fields) >= _FIELDS:
                    yield _Socket(_place(fields[1]), _place(fields[2]), fields[3], int(fields[7]))


def _place(told: str) -> Place:
    """Return an address as it is usually written; here it is in words of the machine's own order."""
    address, _, port = told.partition(":")
    words = (int(address[start : start + 8], 16) for start in range(0, len(address), 8))
    return _plain(
        str(ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words))), int(port, 16)
    )


def _plain(address: str, port: int) -> Place:
    """Return an address in one of its forms: one of IPv4 may be told as one of IPv6."""
    with suppress(ValueError):
        found = ipaddress.ip_address(address)
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return str(mapped or found), port
    return address, port
