# SPDX-License-Identifier: Apache-2.0
"""Name a TCP port of a server as Hadoop configuration does.

Source: org.apache.hadoop.net.NetUtils of Hadoop 3.5.0, with which a test compares. Names with an underscore, which Java
refuses and resolvers know, are taken.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final

from msgspec import Struct

_SHOWN_CHARACTERS: Final = 256
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<authority>[^/]*)(?:/.*)?", re.DOTALL)


class Address(Struct, frozen=True):
    """Hold a host (name or literal, resolved anew at every connect) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Tell whether the host is every address of a machine."""
        return is_wildcard(self.host)

    @classmethod
    def parse(cls, text: str, *, default_port: int | None = None, lowest_port: int = 1) -> Address:
        """Read `host:port`, `[ipv6]:port` or, with a default port, `host`; `scheme://` before it has no meaning.

        Args:
            text: as in a file.
            default_port: taken where none is written.
            lowest_port: 0 where a server reads its own address, for which 0 is a free port.

        Raises:
            ValueError: the host is empty or none, or the port is missing or outside lowest_port..65535.
        """
        stripped = text.strip()
        shown = repr(stripped[:_SHOWN_CHARACTERS])
        found = _SCHEME.fullmatch(stripped)
        host, port_text = _split(stripped if found is None else found["authority"], shown)
        if port_text is None:
            if default_port is None:
                raise ValueError(f"{shown} has no port")
            port_text = str(default_port)
        if not (port_text.isascii() and port_text.isdigit() and lowest_port <= int(port_text) <= 65535):
            raise ValueError(f"{shown} has no port between {lowest_port} and 65535")
        return cls(host, int(port_text))


def is_wildcard(host: str) -> bool:
    """Tell whether a host is every address of a machine: 0.0.0.0 or ::, in any spelling."""
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        return _is_short_zero(host)
    mapped = literal.ipv4_mapped if isinstance(literal, ipaddress.IPv6Address) else None
    return (mapped or literal).is_unspecified


def _split(authority: str, shown: str) -> tuple[str, str | None]:
    """Cut an authority into host and port; no port where none is written."""
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        if not _is_ipv6(host) or (rest and not rest.startswith(":")):
            raise ValueError(f"{shown} has no host: brackets hold an IPv6 address, as in [::1]:8032")
        return host, rest[1:] if rest else None
    host, colon, port_text = authority.partition(":")
    if ":" in port_text:
        raise ValueError(f"{shown} has several colons; an IPv6 address stands in brackets, as in [::1]:8032")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{shown} has no host of letters, digits, dots and hyphens")
    return host, port_text if colon else None


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_short_zero(host: str) -> bool:
    """Tell whether a resolver takes a text such as `0` or `000.0.0.0` for 0.0.0.0."""
    try:
        return socket.inet_aton(host) == b"\x00\x00\x00\x00"
    except OSError:
        return False
