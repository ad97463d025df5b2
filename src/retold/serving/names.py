"""What browsers may call this server: any other name is one that was made to lead here."""

import ipaddress

import msgspec

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_USUAL = 80
"""The port that browsers do not name."""


class HostNames(msgspec.Struct, frozen=True):
    """The names of a server on a port."""

    port: int
    given: tuple[str, ...] = ()
    """Names beside those of every machine for itself."""
    is_open: bool = False
    """Whether other machines may come, by any address: one of numbers cannot be made to lead elsewhere."""

    def __contains__(self, host: object) -> bool:
        """Tell whether this is the host that a browser names where it means this server."""
        name = self._without_port(str(host).lower())
        if name is None:
            return False
        known = (*LOOPBACK, *(one.lower() for one in self.given))
        return name in known or (self.is_open and _is_number(name))

    def _without_port(self, host: str) -> str | None:
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, str(_USUAL)
        if port != str(self.port):
            return None
        if name.startswith("[") and name.endswith("]"):
            return name[1:-1]
        return None if ":" in name else name


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
