# SPDX-License-Identifier: Apache-2.0
"""Name a TCP port of a server as Hadoop configuration does."""

from __future__ import annotations

from msgspec import Struct


class Address(Struct, frozen=True):
    """Hold a host (name or literal, resolved anew at every connect) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, *, default_port: int | None = None) -> Address:
        """Read `host:port`, `[ipv6]:port` or, with a default port, `host`.

        Raises:
            ValueError: the host is empty or has blanks, or the port is missing or outside 1..65535.
        """
        stripped = text.strip()
        host, separator, port_text = stripped.rpartition(":")
        if not separator or port_text.endswith("]"):
            if default_port is None:
                raise ValueError(f"{stripped[:256]!r} has no port")
            host, port_text = stripped, str(default_port)
        host = host.removeprefix("[").removesuffix("]")
        if not host or any(character.isspace() for character in host):
            raise ValueError(f"{stripped[:256]!r} has no host")
        if not (port_text.isascii() and port_text.isdigit() and 1 <= int(port_text) <= 65535):
            raise ValueError(f"{stripped[:256]!r} has no port between 1 and 65535")
        return cls(host, int(port_text))
