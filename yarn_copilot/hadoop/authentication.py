# SPDX-License-Identifier: Apache-2.0
"""Say who calls, in whose name, and run the handshake that proves it on a connected socket."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.kerberos import KerberosLogin
from yarn_copilot.hadoop.sasl import messages
from yarn_copilot.hadoop.sasl.digest_md5 import DigestAuthenticator
from yarn_copilot.hadoop.sasl.kerberos import KerberosAuthenticator
from yarn_copilot.hadoop.sasl.negotiation import SIMPLE, Authenticator, Negotiation, Outcome
from yarn_copilot.hadoop.sasl.tokens import DelegationToken
from yarn_copilot.hadoop.security import AuthenticationMethod, ClusterSecurity
from yarn_copilot.hadoop.threads import in_thread

HANDSHAKE_READ_BYTES: Final = 65_536
HANDSHAKE_FRAME_BYTES_MAX: Final = 1_048_576
"""Largest frame before the server is known; tickets with long group lists have some tens of kilobytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Say who calls a cluster.

    Attributes:
        user: user name with simple authentication; Kerberos and tokens have names of their own.
        proxy_user: in whose name the calls are made; the server's hadoop.proxyuser rules must allow it.
        login: identity in Kerberos.
        token: delegation token; used where a server takes one (the client port does, the administration port not).
        read_token: gives the token anew for each connection, in place of `token`.
        security: what the cluster asks for.
    """

    user: str
    proxy_user: str | None = None
    login: KerberosLogin = field(default_factory=KerberosLogin)
    token: DelegationToken | None = None
    read_token: Callable[[], DelegationToken] | None = None
    security: ClusterSecurity = field(default_factory=ClusterSecurity)

    @property
    def needs_handshake(self) -> bool:
        """Tell whether connections begin with SASL."""
        has_token = self.token is not None or self.read_token is not None
        return has_token or self.security.method is AuthenticationMethod.KERBEROS

    def authenticators(self, host: str) -> Sequence[Authenticator]:
        """List the ways in which this identity can prove itself to a server on `host` (its canonical name).

        Raises:
            CredentialsError: the token cannot be read.
        """
        ways: list[Authenticator] = []
        protections = self.security.protections
        token = self._current_token()
        if token is not None:
            ways.append(
                DigestAuthenticator(identifier=token.identifier, password=token.password, protections=protections)
            )
        if self.security.method is AuthenticationMethod.KERBEROS:
            ways.append(
                KerberosAuthenticator(
                    servers=self.security.servers,
                    host=host,
                    protections=protections,
                    open_context=self.login.open_context,
                )
            )
        return ways

    def _current_token(self) -> DelegationToken | None:
        if self.read_token is None:
            return self.token
        try:
            return self.read_token()
        except ConfigError as error:
            raise errors.CredentialsError(str(error)) from error

    def context_users(self, method: str) -> tuple[str | None, str | None]:
        """Give effective and real user of the connection context after a handshake with `method`.

        After a handshake the server knows the user; naming another one asks to act for him.
        """
        if method == SIMPLE:
            return (self.proxy_user, self.user) if self.proxy_user else (self.user, None)
        return self.proxy_user, None


async def authenticate(
    identity: Identity,
    address: Address,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> Outcome:
    """Send the connection header and run the handshake; the caller sets the deadline and closes on errors.

    Raises:
        AuthenticationError: the sides did not agree; its subclasses say why.
        ConnectError: the server ended the connection.
        ProtocolViolationError: the server does not speak the protocol.
        RemoteCallError: the server refused with another exception.
    """
    host = await canonical_host(address)
    ways = await in_thread(lambda: identity.authenticators(host))  # reads a token's file and may look up names
    negotiation = Negotiation(ways, allow_simple=identity.security.fallback_to_simple)
    decoder = framing.ResponseDecoder(max_frame_bytes=HANDSHAKE_FRAME_BYTES_MAX)
    writer.write(framing.connection_header(authentication=framing.AUTHENTICATION_SASL) + negotiation.start())
    while True:
        data = await reader.read(HANDSHAKE_READ_BYTES)
        if not data:
            raise errors.ConnectError(f"{address} closed the connection during the handshake")
        for response in decoder.receive(data):
            if response.status is not framing.Status.SUCCESS:
                raise errors.from_remote_exception(
                    response.exception_class_name,
                    response.error_message,
                    method=f"authentication to {address} refused",
                )
            message = messages.decode(response)
            writer.write(await in_thread(lambda message=message: negotiation.receive(message)))  # type: ignore[misc]
        if negotiation.outcome is not None:
            if decoder.buffered_bytes:
                raise errors.ProtocolViolationError(f"{address}: bytes follow the end of the handshake")
            return negotiation.outcome


async def canonical_host(address: Address) -> str:
    """Give the name that a server's principal has in place of _HOST: the host's canonical name in lower case.

    A name is asked for its canonical form; an address is looked up in reverse. What cannot be resolved stays as it is.
    """
    loop = asyncio.get_running_loop()
    try:
        if _is_literal(address.host):
            name, _port = await loop.getnameinfo((address.host, address.port), socket.NI_NAMEREQD)
            return name.lower()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
        return (found[0][3] or address.host).lower()
    except OSError:
        return address.host.lower()


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
