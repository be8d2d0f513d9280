# SPDX-License-Identifier: Apache-2.0
"""Name the qualities of protection and say what a security layer does.

Source: hadoop.rpc.protection in core-default.xml, SaslRpcServer.QualityOfProtection of Hadoop 3.5.0, RFC 4752 and 2831.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from yarn_copilot.errors import ConfigError


class Protection(Enum):
    """Choose what happens to messages after the handshake: name in Hadoop, name in SASL, bit in RFC 4752."""

    AUTHENTICATION = ("authentication", "auth", 1)
    INTEGRITY = ("integrity", "auth-int", 2)
    PRIVACY = ("privacy", "auth-conf", 4)

    def __init__(self, hadoop_name: str, sasl_name: str, layer_bit: int) -> None:
        self.hadoop_name = hadoop_name
        self.sasl_name = sasl_name
        self.layer_bit = layer_bit


class SecurityLayer(Protocol):
    """Protect messages in both directions; one object for one connection, used in the order of sending."""

    max_plain_bytes: int
    """Longest message that the peer takes at once."""

    def wrap(self, message: bytes) -> bytes:
        """Protect a message of at most `max_plain_bytes`."""

    def unwrap(self, token: bytes) -> bytes:
        """Check and open what the peer protected.

        Raises:
            AuthenticationError: it was altered, replayed, out of order, or the session is over.
        """


def parse_protections(text: str) -> tuple[Protection, ...]:
    """Read hadoop.rpc.protection: one name, or several in the order of preference.

    Raises:
        ConfigError: a name is unknown, or there is none.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    known = {protection.hadoop_name: protection for protection in Protection}
    if not names or any(name not in known for name in names):
        raise ConfigError(
            f"hadoop.rpc.protection = {text[:256]!r}, allowed are authentication, integrity and privacy, "
            "several of them with commas"
        )
    return tuple(dict.fromkeys(known[name] for name in names))
