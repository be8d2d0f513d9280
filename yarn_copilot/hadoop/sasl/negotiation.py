# SPDX-License-Identifier: Apache-2.0
"""Be the client's side of one SASL handshake: messages in, frames out.

1. The client sends NEGOTIATE. 2. The server offers ways to authenticate, each perhaps with a first challenge, or says
SUCCESS at once: it asks nobody who he is. 3. The client sends INITIATE with one offer (its challenge left out) and the
first token. 4. CHALLENGE and RESPONSE follow until SUCCESS, whose token, if there is one, is the server's proof.
Choosing SIMPLE ends the exchange with INITIATE; no answer comes. Source: SaslRpcClient of Hadoop 3.5.0.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from yarn_copilot.hadoop.errors import AuthenticationError, ProtocolViolationError
from yarn_copilot.hadoop.sasl.messages import Auth, SaslMessage, State, encode_frame
from yarn_copilot.hadoop.sasl.protection import SecurityLayer

SIMPLE: Final = "SIMPLE"
ROUNDS_MAX: Final = 16
"""Challenges that a handshake may have; GSSAPI needs two, DIGEST-MD5 one."""


class Established(Struct, frozen=True):
    """Hold what a mechanism has agreed on.

    Attributes:
        layer: protects later messages; None where they go as they are.
        lifetime_seconds: how long from now the agreement holds; None: without an end.
    """

    layer: SecurityLayer | None = None
    lifetime_seconds: float | None = None


Mechanism = Generator[bytes, bytes | None, Established]
"""Yields tokens for the server and is sent its tokens (None: SUCCESS without one).

It returns only when the server has proved itself.
"""


class Authenticator(Protocol):
    """Be one way in which this side can authenticate itself."""

    @property
    def method(self) -> str:
        """Name the method as servers offer it: TOKEN or KERBEROS."""

    @property
    def mechanism(self) -> str:
        """Name the SASL mechanism as servers offer it."""

    def begin(self, auth: Auth) -> Mechanism:
        """Start an exchange for the server's offer.

        Raises:
            AuthenticationError: the offer is not from the configured server, or there are no credentials.
        """


class Outcome(Struct, frozen=True):
    """Hold how a handshake ended: the method used (SIMPLE, TOKEN, KERBEROS) and what was agreed on."""

    method: str
    established: Established = Established()


class Negotiation:
    """Run one handshake; feed it every SASL message of the server until `outcome` is there."""

    def __init__(self, authenticators: Sequence[Authenticator], *, allow_simple: bool = False) -> None:
        """Say what this side can do.

        Args:
            authenticators: ways in which this side can authenticate itself; the server's order of offers decides.
            allow_simple: go on without authentication where the server asks for none. Otherwise that is an error:
                a false server could ask for none.
        """
        self._authenticators = {(one.method, one.mechanism): one for one in authenticators}
        self._allow_simple = allow_simple
        self._mechanism: Mechanism | None = None
        self._method = ""
        self._rounds = 0
        self.outcome: Outcome | None = None

    def start(self) -> bytes:
        """Give the first frame."""
        return encode_frame(State.NEGOTIATE)

    def receive(self, message: SaslMessage) -> bytes:
        """Take a message of the server and give what to send, which may be nothing.

        Raises:
            AuthenticationError: there is no common way, or the exchange failed.
            ProtocolViolationError: the message is not due now.
        """
        if self.outcome is not None:
            raise ProtocolViolationError("SASL message after the end of the handshake")
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            raise ProtocolViolationError(f"SASL handshake without an end after {ROUNDS_MAX} messages")
        if self._mechanism is None:
            return self._choose(message)
        match message.state:
            case State.CHALLENGE:
                return encode_frame(State.RESPONSE, token=self._answer(message.token or b""))
            case State.SUCCESS:
                self._finish(message.token)
                return b""
            case _:
                raise ProtocolViolationError(f"SASL state {message.state} where a challenge or success is due")

    def _choose(self, message: SaslMessage) -> bytes:
        if message.state == State.SUCCESS:
            self._accept_simple("the server asks for no authentication")
            return b""
        if message.state != State.NEGOTIATE:
            raise ProtocolViolationError(f"SASL state {message.state} where the server's offers are due")
        for auth in message.auths:
            authenticator = self._authenticators.get((auth.method, auth.mechanism))
            if authenticator is not None:
                self._mechanism = authenticator.begin(auth)
                self._method = auth.method
                return encode_frame(State.INITIATE, token=next(self._mechanism), auths=(auth,))
            if auth.method == SIMPLE and self._allow_simple:
                self.outcome = Outcome(SIMPLE)
                return encode_frame(State.INITIATE, auths=(auth,))
        offers = ", ".join(map(str, message.auths)) or "nothing"
        ours = ", ".join("/".join(key) for key in self._authenticators) or "none"
        raise AuthenticationError(f"no common way to authenticate: the server offers {offers}; configured here: {ours}")

    def _answer(self, token: bytes) -> bytes:
        try:
            return self._running().send(token)
        except StopIteration:
            raise ProtocolViolationError("SASL challenge after the last step") from None

    def _finish(self, token: bytes | None) -> None:
        try:
            self._running().send(token)
        except StopIteration as end:
            self.outcome = Outcome(self._method, end.value)
            return
        raise AuthenticationError("the server ended the handshake before it had proved who it is")

    def _running(self) -> Mechanism:
        if self._mechanism is None:
            raise AssertionError("no mechanism was chosen")
        return self._mechanism

    def _accept_simple(self, why: str) -> None:
        if not self._allow_simple:
            raise AuthenticationError(
                f"{why}, but this side is configured to authenticate; set "
                "ipc.client.fallback-to-simple-auth-allowed to go on without"
            )
        self.outcome = Outcome(SIMPLE)
