# SPDX-License-Identifier: Apache-2.0
"""Log in to Kerberos and open GSS-API contexts, with the `gssapi` package (extra `kerberos`).

With a keytab the library gets tickets itself, keeps them in memory, and gets new ones when half of their life is over:
there is no `kinit` beside this process and no file with tickets. Without a keytab it uses the tickets that somebody
else keeps, by default those of KRB5CCNAME. Calls here may wait for a KDC: run them in a thread. krb5.conf is found by
the library (KRB5_CONFIG).
"""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from yarn_copilot.hadoop.errors import (
    AuthenticationError,
    CredentialsError,
    KDCUnreachableError,
    ServerIdentityError,
)
from yarn_copilot.hadoop.sasl.principals import Principal

_MINOR_CODES: Final[Mapping[int, tuple[type[AuthenticationError], str]]] = {
    -1765328378: (CredentialsError, "the KDC does not know the client's principal"),
    -1765328377: (ServerIdentityError, "the KDC does not know the server's principal"),
    -1765328366: (CredentialsError, "the client's principal is locked or has ended"),
    -1765328360: (CredentialsError, "the keytab's key is not the principal's (changed since the keytab was written?)"),
    -1765328352: (CredentialsError, "the ticket is over"),
    -1765328347: (CredentialsError, "the clocks of this host and the Kerberos servers differ by too much"),
    -1765328243: (CredentialsError, "there are no tickets; log in, or configure a keytab"),
    -1765328236: (CredentialsError, "the clocks of this host and the KDC differ by too much"),
    -1765328230: (CredentialsError, "no KDC is known for the realm; see krb5.conf"),
    -1765328228: (KDCUnreachableError, "no KDC of the realm answers"),
    -1765328203: (CredentialsError, "the keytab has no key of the principal"),
    -1765328189: (CredentialsError, "there are no tickets; log in, or configure a keytab"),
}
"""Error codes of the krb5 library (krb5_err.et, the same since 1.0) that deserve words of their own."""


class Mechanism(StrEnum):
    """Give the GSS-API mechanisms in use, by object identifier."""

    KERBEROS = "1.2.840.113554.1.2.2"
    """What Hadoop RPC speaks."""
    SPNEGO = "1.3.6.1.5.5.2"
    """Kerberos in the envelope that HTTP expects (RFC 4559)."""


def _gssapi() -> Any:
    """Import the library when it is needed first.

    Raises:
        CredentialsError: it is not installed.
    """
    try:
        return importlib.import_module("gssapi")
    except ImportError as error:
        raise CredentialsError(f"Kerberos needs the extra yarn-copilot[kerberos]: {error}") from error


_NO_CACHE: Final = -1765328189
_NO_KEY: Final = -1765328203


@contextmanager
def _translated(what: str, *, has_keytab: bool = False) -> Iterator[None]:
    """Turn the library's errors into ours."""
    exceptions = _gssapi().exceptions
    try:
        yield
    except exceptions.GSSError as error:
        minor = error.min_code - (1 << 32) if error.min_code > 0x7FFF_FFFF else error.min_code
        if has_keytab and minor == _NO_CACHE:
            minor = _NO_KEY  # the cache is our own: it stayed empty because the keytab could not fill it
        kind, words = _MINOR_CODES.get(minor, (AuthenticationError, ""))
        if not words and isinstance(error, (exceptions.MissingCredentialsError, exceptions.ExpiredCredentialsError)):
            kind = CredentialsError
        said = " ".join(str(error.gen_message()).split())[:256]
        raise kind(f"{what}: {words + '; ' if words else ''}{said}") from error


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """Be one identity in Kerberos.

    Attributes:
        principal: who to be; None: whoever the tickets or the keytab belong to.
        keytab: file with its key; None: use existing tickets.
        ticket_cache: name of the cache with existing tickets; None: the library's default.
    """

    principal: Principal | None = None
    keytab: Path | None = None
    ticket_cache: str | None = None
    _memory_cache: str = ""

    def __post_init__(self) -> None:
        """Name a cache of our own, in memory."""
        object.__setattr__(self, "_memory_cache", f"MEMORY:yarn-copilot-{uuid.uuid4().hex}")

    def describe(self) -> str:
        """Say who this is, for messages."""
        who = str(self.principal) if self.principal is not None else "the default principal"
        return f"{who} by {self.keytab}" if self.keytab else f"{who} by tickets"

    def credentials(self, mechanism: Mechanism = Mechanism.KERBEROS) -> Any:
        """Log in, or renew what is half over, or do nothing; blocks.

        Args:
            mechanism: what they are used with.

        Raises:
            CredentialsError: the keytab cannot be read, or the KDC refuses.
        """
        gssapi = _gssapi()
        store = self._store()
        with _translated(f"login of {self.describe()}", has_keytab=self.keytab is not None):
            name = None
            if self.principal is not None:
                name = gssapi.Name(str(self.principal), gssapi.NameType.kerberos_principal)
            return gssapi.Credentials(name=name, usage="initiate", store=store, mechs=[_object_id(mechanism)])

    def lifetime_seconds(self) -> float:
        """Tell how long the tickets hold from now; blocks as `credentials` does.

        Raises:
            CredentialsError: there are none, or they are over.
        """
        credentials = self.credentials()
        with _translated(f"tickets of {self.describe()}"):
            return float(credentials.lifetime)

    def open_context(self, server: Principal, *, mechanism: Mechanism = Mechanism.KERBEROS) -> GSSAPIContext:
        """Begin a context with a server; blocks.

        Args:
            server: whom to talk to; without a realm it is looked up for the host.
            mechanism: what both sides speak.

        Raises:
            CredentialsError: there are no usable tickets.
        """
        gssapi = _gssapi()
        credentials = self.credentials(mechanism)
        with _translated(f"context with {server}"):
            if server.realm:
                name = gssapi.Name(str(server), gssapi.NameType.kerberos_principal)
            else:
                name = gssapi.Name(f"{server.name}@{server.instance}", gssapi.NameType.hostbased_service)
            flags = gssapi.RequirementFlag
            context = gssapi.SecurityContext(
                name=name,
                creds=credentials,
                usage="initiate",
                mech=_object_id(mechanism),
                flags=flags.mutual_authentication
                | flags.integrity
                | flags.confidentiality
                | flags.replay_detection
                | flags.out_of_sequence_detection,
            )
        return GSSAPIContext(context, f"{self.describe()} with {server}")

    def _store(self) -> dict[str, str] | None:
        if self.keytab is not None:
            if not os.access(self.keytab, os.R_OK):
                raise CredentialsError(f"keytab {self.keytab} cannot be read")
            return {"client_keytab": str(self.keytab), "ccache": self._memory_cache}
        return {"ccache": self.ticket_cache} if self.ticket_cache else None


def _object_id(mechanism: Mechanism) -> Any:
    return _gssapi().OID.from_int_seq(mechanism.value)


class GSSAPIContext:
    """Be one context; satisfies `sasl.kerberos.SecurityContext`."""

    def __init__(self, context: Any, what: str) -> None:
        """Take a context that has not begun; `what` names both sides in errors."""
        self._context = context
        self._what = what

    @property
    def is_complete(self) -> bool:
        """Tell whether both sides are known to each other."""
        return bool(self._context.complete)

    @property
    def lifetime_seconds(self) -> float | None:
        """Tell how long the context holds from now."""
        with _translated(self._what):
            return float(self._context.lifetime)

    def step(self, token: bytes | None) -> bytes:
        """Take the server's token and give the next."""
        with _translated(self._what):
            answer = self._context.step(token)
        return bytes(answer or b"")

    def wrap(self, message: bytes, *, encrypt: bool) -> bytes:
        """Sign or encrypt."""
        with _translated(self._what):
            result = self._context.wrap(message, encrypt)
        if encrypt and not result.encrypted:
            raise AuthenticationError(f"{self._what}: the session key cannot encrypt")
        return bytes(result.message)

    def unwrap(self, token: bytes, *, must_be_encrypted: bool) -> bytes:
        """Check or decrypt."""
        # The library turns a token's bytes round in place, which no other holder of them should see.
        own_copy = bytes(bytearray(token))
        with _translated(self._what):
            result = self._context.unwrap(own_copy)
        if must_be_encrypted and not result.encrypted:
            raise AuthenticationError(f"{self._what}: a message was signed but not encrypted")
        return bytes(result.message)
