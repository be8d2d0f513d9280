# SPDX-License-Identifier: Apache-2.0
"""Authenticate with Kerberos: SASL GSSAPI (RFC 4752) over any GSS-API context.

The last exchange settles protection: the server sends, signed, a bit set of what it can and how much it takes at
once; the client answers, signed, with one bit and its own limit. The library is behind `SecurityContext`, so that the
exchange is tested without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from yarn_copilot.hadoop.errors import AuthenticationError, ProtocolViolationError
from yarn_copilot.hadoop.sasl.messages import Auth
from yarn_copilot.hadoop.sasl.negotiation import Established, Mechanism
from yarn_copilot.hadoop.sasl.principals import Principal, ServerPrincipals
from yarn_copilot.hadoop.sasl.protection import Protection, SecurityLayer

MECHANISM: Final = "GSSAPI"
KERBEROS_METHOD: Final = "KERBEROS"
RECEIVE_BYTES_MAX: Final = 0xFF_FFFF
"""The largest limit that three bytes hold. Hadoop wraps a whole frame at once, whatever its length."""
PLAIN_BYTES_MAX: Final = 60_000


class SecurityContext(Protocol):
    """Be a GSS-API context of the initiator; every method raises `AuthenticationError` for the library's errors."""

    @property
    def is_complete(self) -> bool:
        """Tell whether both sides are known to each other."""

    @property
    def lifetime_seconds(self) -> float | None:
        """Tell how long the context holds from now; None: without an end."""

    def step(self, token: bytes | None) -> bytes:
        """Take the server's token (None at first) and give the next; may ask the KDC, so it blocks."""

    def wrap(self, message: bytes, *, encrypt: bool) -> bytes:
        """Sign or encrypt."""

    def unwrap(self, token: bytes, *, must_be_encrypted: bool) -> bytes:
        """Check or decrypt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosAuthenticator:
    """Answer the server's offer KERBEROS/GSSAPI.

    Attributes:
        servers: which principals are the right ones.
        host: canonical name of the host that was dialled.
        protections: what is acceptable, the best liked first.
        open_context: makes a context for a server's principal.
    """

    servers: ServerPrincipals
    host: str
    protections: Sequence[Protection]
    open_context: Callable[[Principal], SecurityContext]
    method: str = KERBEROS_METHOD
    mechanism: str = MECHANISM

    def begin(self, auth: Auth) -> Mechanism:
        """Check the server's name, then start."""
        return self._exchange(self.open_context(self.servers.accept(auth, self.host)))

    def _exchange(self, context: SecurityContext) -> Mechanism:
        token: bytes | None = None
        while not context.is_complete:
            answer = context.step(token)
            # Where the last token of the server completes the context there is nothing to say, and that is said.
            token = yield answer
        if token is None or token == b"":
            raise ProtocolViolationError("the server's list of protections is missing")
        offer = context.unwrap(token, must_be_encrypted=False)
        if len(offer) != 4:
            raise ProtocolViolationError(f"the server's list of protections has {len(offer)} bytes, must have 4")
        protection = self._choose(offer[0])
        server_limit = int.from_bytes(offer[1:], "big")
        own_limit = 0 if protection is Protection.AUTHENTICATION else RECEIVE_BYTES_MAX
        yield context.wrap(bytes((protection.layer_bit,)) + own_limit.to_bytes(3, "big"), encrypt=False)
        return Established(_layer(context, protection, server_limit), context.lifetime_seconds)

    def _choose(self, offered_bits: int) -> Protection:
        for protection in self.protections:
            if offered_bits & protection.layer_bit:
                return protection
        offered = [one.hadoop_name for one in Protection if offered_bits & one.layer_bit]
        raise AuthenticationError(
            f"the server's hadoop.rpc.protection is {', '.join(offered) or 'nothing'}, here it is "
            f"{', '.join(protection.hadoop_name for protection in self.protections)}"
        )


class GSSAPILayer:
    """Sign or encrypt with the context's keys."""

    def __init__(self, context: SecurityContext, *, encrypt: bool, max_plain_bytes: int) -> None:
        """Take the context over."""
        self.max_plain_bytes = max_plain_bytes
        self._context = context
        self._encrypt = encrypt

    def wrap(self, message: bytes) -> bytes:
        """Protect a message."""
        return self._context.wrap(message, encrypt=self._encrypt)

    def unwrap(self, token: bytes) -> bytes:
        """Check and open a message."""
        return self._context.unwrap(token, must_be_encrypted=self._encrypt)


def _layer(context: SecurityContext, protection: Protection, server_limit: int) -> SecurityLayer | None:
    if protection is Protection.AUTHENTICATION:
        return None
    # The limit counts protected bytes; what a mechanism adds stays below 512.
    limit = max(1, min(PLAIN_BYTES_MAX, server_limit - 512)) if server_limit else PLAIN_BYTES_MAX
    return GSSAPILayer(context, encrypt=protection is Protection.PRIVACY, max_plain_bytes=limit)
