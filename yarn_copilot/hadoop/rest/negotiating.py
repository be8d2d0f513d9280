# SPDX-License-Identifier: Apache-2.0
"""Prove to a web service who we are by SPNEGO, and let it prove who it is.

The client sends `Authorization: Negotiate <base64>`; the service's answer carries `WWW-Authenticate: Negotiate
<base64>` with its own proof, and a signed cookie that stands for the exchange from then on. Source: RFC 4559,
KerberosAuthenticationHandler of Hadoop 3.5.0.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.authentication import canonical_host
from yarn_copilot.hadoop.kerberos import GSSAPIContext, KerberosLogin, Mechanism
from yarn_copilot.hadoop.sasl.principals import Principal
from yarn_copilot.hadoop.threads import in_thread

SERVICE: Final = "HTTP"
"""First part of the principal of every web service (RFC 4559)."""

_SCHEME: Final = "Negotiate"


class KerberosNegotiator:
    """Answer challenges with one identity; belongs to one event loop."""

    def __init__(self, login: KerberosLogin) -> None:
        """Take who to be; nothing is asked of a KDC yet."""
        self._login = login

    async def begin(self, address: Address) -> KerberosExchange:
        """Begin an exchange with the service HTTP of a host, by its canonical name.

        Raises:
            AuthenticationError: no valid credentials, or the KDC does not know the service.
        """
        server = Principal(SERVICE, await canonical_host(address))

        def step() -> KerberosExchange:
            try:
                context = self._login.open_context(server, mechanism=Mechanism.SPNEGO)
                return KerberosExchange(context, context.step(None), server)
            except errors.AuthenticationError:
                # Inside the envelope the library's error code is lost; without it the same failure says what is wrong.
                self._login.open_context(server).step(None)
                raise

        return await in_thread(step)


class KerberosExchange:
    """Be one exchange; satisfies `Exchange` of `rest.authentication`."""

    def __init__(self, context: GSSAPIContext, token: bytes, server: Principal) -> None:
        """Take a context that has made its first token."""
        self._context = context
        self._server = server
        self.authorization = f"{_SCHEME} {base64.b64encode(token).decode()}"

    def confirm(self, answer: str) -> None:
        """Check the service's proof.

        Args:
            answer: WWW-Authenticate of a good answer.

        Raises:
            AuthenticationError: there is none, or it is not the service's.
        """
        scheme, _, text = answer.strip().partition(" ")
        if scheme.lower() != _SCHEME.lower() or not text.strip():
            raise errors.ServerIdentityError(f"the web service did not prove that it is {self._server}")
        try:
            token = base64.b64decode(text.strip(), validate=True)
        except binascii.Error as error:
            raise errors.ServerIdentityError(f"the proof of {self._server} is no base64") from error
        self._context.step(token)
        if not self._context.is_complete:
            raise errors.ServerIdentityError(f"{self._server} ended the exchange too early")
