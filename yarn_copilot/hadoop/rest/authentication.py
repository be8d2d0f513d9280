# SPDX-License-Identifier: Apache-2.0
"""Say who calls the web services: a plain name, a delegation token, or a Kerberos principal over SPNEGO.

Secrets live in headers only; no error text ever contains one. Source: hadoop-auth of 3.5.0
(DelegationTokenAuthenticator, KerberosAuthenticator), RMAuthenticationFilter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.addresses import Address

TOKEN_HEADERS: Final = ("X-Hadoop-Delegation-Token", "Hadoop-YARN-Auth-Delegation-Token")
"""Today's name of the header, and the older one that the ResourceManager still reads."""

_TOKEN_BYTES_MAX: Final = 16_384


class Exchange(Protocol):
    """Be one answer to an HTTP Negotiate challenge.

    Attributes:
        authorization: value of the Authorization header: `Negotiate <base64>`.
    """

    authorization: str

    def confirm(self, answer: str) -> None:
        """Check the proof of the service, WWW-Authenticate of a good answer.

        Raises:
            HadoopRPCError: it is missing or wrong.
        """


class Negotiator(Protocol):
    """Answer challenges; satisfied by shape by whoever has Kerberos credentials."""

    async def begin(self, address: Address) -> Exchange:
        """Begin an exchange with the service HTTP on an address.

        Raises:
            HadoopRPCError: no valid credentials.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WebIdentity:
    """Hold who calls.

    Attributes:
        user: name for simple authentication (`user.name`); not sent with a token, and of no effect after SPNEGO.
        token: gives a delegation token in its URL-safe text form; asked before each request, so that it may be renewed.
        negotiator: answers 401 with SPNEGO.
        do_as: in whose name the calls are made; the service's proxy user rules must allow it.
    """

    user: str
    token: Callable[[], str] | None = None
    negotiator: Negotiator | None = None
    do_as: str | None = None

    def parameters(self) -> dict[str, str]:
        """Give the query parameters of every request."""
        who = {} if self.token is not None else {"user.name": self.user}
        return who if self.do_as is None else {**who, "doAs": self.do_as}

    def headers(self) -> Mapping[str, str]:
        """Give the headers of every request.

        Raises:
            ConfigError: the token cannot be read.
        """
        if self.token is None:
            return {}
        token = self.token()
        return dict.fromkeys(TOKEN_HEADERS, token)


def token_file(path: Path) -> Callable[[], str]:
    """Read a token from a file each time it is needed; whoever renews it just writes the file.

    Raises:
        ConfigError: from the callable: the file cannot be read or holds no token.
    """

    def read() -> str:
        try:
            with path.open("rb") as file:
                content = file.read(_TOKEN_BYTES_MAX + 1)
        except OSError as error:
            raise ConfigError(f"{path}: the delegation token cannot be read: {error.strerror}") from error
        token = content.strip()
        if not token or len(content) > _TOKEN_BYTES_MAX or not token.isascii() or b"\n" in token or b"\r" in token:
            raise ConfigError(f"{path}: must hold one delegation token on one line, at most {_TOKEN_BYTES_MAX} bytes")
        return token.decode()

    return read
