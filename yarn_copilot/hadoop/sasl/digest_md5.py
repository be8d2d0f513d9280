# SPDX-License-Identifier: Apache-2.0
"""Authenticate with a delegation token: SASL DIGEST-MD5 (RFC 2831) as Hadoop uses it.

Written here because no library that is still kept has it with its security layers: RFC 6331 declared the mechanism
historic, and packages dropped it or do authentication alone. Hadoop goes on using it for every token. MD5 and RC4 are
what the protocol prescribes, not a choice; the password is a random secret of 160 bits, and who needs privacy against
somebody on the wire should have Kerberos or TLS below.

User name and password are the token's identifier and password in base64. Ciphers: RC4 in its three key lengths, which
every Java runtime offers.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from yarn_copilot.hadoop.errors import AuthenticationError, ProtocolViolationError, ServerIdentityError
from yarn_copilot.hadoop.sasl.messages import Auth
from yarn_copilot.hadoop.sasl.negotiation import Established, Mechanism
from yarn_copilot.hadoop.sasl.protection import Protection, SecurityLayer
from yarn_copilot.hadoop.sasl.rc4 import RC4

MECHANISM: Final = "DIGEST-MD5"
TOKEN_METHOD: Final = "TOKEN"  # noqa: S105  (the name of a method)
CHALLENGE_BYTES_MAX: Final = 2048
"""Limit of RFC 2831 for a challenge."""
NONCE_COUNT: Final = "00000001"
CIPHER_KEY_BYTES: Final[Mapping[str, int]] = {"rc4": 16, "rc4-56": 7, "rc4-40": 5}
MAC_BYTES: Final = 10
TRAILER_BYTES: Final = 6
MESSAGE_TYPE: Final = b"\x00\x01"
PLAIN_BYTES_MAX: Final = 60_000
"""Below the 65,536 that either side accepts by default, with room for the trailer."""

_CLIENT_SIGNING: Final = b"Digest session key to client-to-server signing key magic constant"
_SERVER_SIGNING: Final = b"Digest session key to server-to-client signing key magic constant"
_CLIENT_SEALING: Final = b"Digest H(A1) to client-to-server sealing key magic constant"
_SERVER_SEALING: Final = b"Digest H(A1) to server-to-client sealing key magic constant"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestAuthenticator:
    """Answer the server's offer TOKEN/DIGEST-MD5.

    Attributes:
        identifier: the token's identifier, bytes as issued.
        password: the token's password, bytes as issued; never shown.
        protections: what is acceptable, the best liked first.
        make_nonce: gives the client's nonce; injected by tests.
    """

    identifier: bytes
    password: bytes = field(repr=False)
    protections: Sequence[Protection] = (Protection.AUTHENTICATION,)
    make_nonce: Callable[[], str] = lambda: base64.b64encode(secrets.token_bytes(24)).decode()
    method: str = TOKEN_METHOD
    mechanism: str = MECHANISM

    def begin(self, auth: Auth) -> Mechanism:
        """Start; a challenge that came with the offer is answered in the first token."""
        return self._exchange(auth)

    def _exchange(self, auth: Auth) -> Mechanism:
        challenge = auth.challenge
        if challenge is None:
            challenge = yield b""
        directives = parse_challenge(challenge or b"")
        session = _Session(
            user=base64.b64encode(self.identifier).decode(),
            password=base64.b64encode(self.password).decode(),
            realm=directives.get("realm", auth.server_id),
            digest_uri=f"{auth.protocol}/{auth.server_id}",
            nonce=_required(directives, "nonce"),
            client_nonce=self.make_nonce(),
            protection=_choose_protection(directives.get("qop", "auth"), self.protections),
        )
        cipher = _choose_cipher(directives) if session.protection is Protection.PRIVACY else None
        proof = yield session.response(cipher)
        told = parse_challenge(proof or b"").get("rspauth", "")
        if not hmac.compare_digest(session.server_proof().encode(), told.encode()):
            raise ServerIdentityError("the server did not prove that it knows the token's secret")
        return Established(session.layer(cipher))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """Hold what both sides know after the challenge."""

    user: str
    password: str = field(repr=False)
    realm: str
    digest_uri: str
    nonce: str
    client_nonce: str
    protection: Protection

    def response(self, cipher: str | None) -> bytes:
        directives = [
            "charset=utf-8",
            f'username="{self.user}"',
            f'realm="{_quoted(self.realm)}"',
            f'nonce="{_quoted(self.nonce)}"',
            f"nc={NONCE_COUNT}",
            f'cnonce="{self.client_nonce}"',
            f'digest-uri="{self.digest_uri}"',
            "maxbuf=65536",
            f"response={self._digest('AUTHENTICATE')}",
            f"qop={self.protection.sasl_name}",
        ]
        if cipher is not None:
            directives.append(f'cipher="{cipher}"')
        return ",".join(directives).encode()

    def server_proof(self) -> str:
        return self._digest("")

    def layer(self, cipher: str | None) -> SecurityLayer | None:
        if self.protection is Protection.AUTHENTICATION:
            return None
        secret = self._secret()
        sealing = None
        if cipher is not None:
            length = CIPHER_KEY_BYTES[cipher]
            sealing = (RC4(_md5(secret[:length] + _CLIENT_SEALING)), RC4(_md5(secret[:length] + _SERVER_SEALING)))
        return DigestLayer(
            sending_key=_md5(secret + _CLIENT_SIGNING), receiving_key=_md5(secret + _SERVER_SIGNING), ciphers=sealing
        )

    def _secret(self) -> bytes:
        """Give H(A1)."""
        base = _md5(f"{self.user}:{self.realm}:{self.password}".encode())
        return _md5(base + f":{self.nonce}:{self.client_nonce}".encode())

    def _digest(self, method: str) -> str:
        a2 = f"{method}:{self.digest_uri}"
        if self.protection is not Protection.AUTHENTICATION:
            a2 += ":" + "0" * 32
        parts = (
            self._secret().hex(),
            self.nonce,
            NONCE_COUNT,
            self.client_nonce,
            self.protection.sasl_name,
            _md5(a2.encode()).hex(),
        )
        return _md5(":".join(parts).encode()).hex()


class DigestLayer:
    """Sign messages, and encrypt them where there are ciphers: `message MAC(10) 0001 sequence(4)`."""

    max_plain_bytes = PLAIN_BYTES_MAX

    def __init__(self, *, sending_key: bytes, receiving_key: bytes, ciphers: tuple[RC4, RC4] | None = None) -> None:
        """Take the keys of both directions, and one cipher for each (sending, receiving)."""
        self._sending_key = sending_key
        self._receiving_key = receiving_key
        self._ciphers = ciphers
        self._sent = 0
        self._received = 0

    def wrap(self, message: bytes) -> bytes:
        """Protect a message."""
        sequence = struct.pack(">I", self._sent)
        self._sent = (self._sent + 1) & 0xFFFF_FFFF
        signed = message + _mac(self._sending_key, sequence, message)
        if self._ciphers is not None:
            signed = self._ciphers[0].apply(signed)
        return signed + MESSAGE_TYPE + sequence

    def unwrap(self, token: bytes) -> bytes:
        """Check and open a message."""
        if len(token) < MAC_BYTES + TRAILER_BYTES:
            raise AuthenticationError(f"protected message of {len(token)} bytes is too short for its signature")
        signed, trailer = token[:-TRAILER_BYTES], token[-TRAILER_BYTES:]
        sequence = struct.pack(">I", self._received)
        if self._ciphers is not None:
            signed = self._ciphers[1].apply(signed)
        message, mac = signed[:-MAC_BYTES], signed[-MAC_BYTES:]
        if trailer != MESSAGE_TYPE + sequence or not hmac.compare_digest(
            mac, _mac(self._receiving_key, sequence, message)
        ):
            raise AuthenticationError(f"protected message {self._received} was altered, repeated or left out")
        self._received = (self._received + 1) & 0xFFFF_FFFF
        return message


def parse_challenge(challenge: bytes) -> dict[str, str]:
    """Read `name=value` pairs with commas between; values may be quoted, with backslash escapes.

    Raises:
        ProtocolViolationError: the text is too long, no text, malformed, or names a directive twice.
    """
    if len(challenge) > CHALLENGE_BYTES_MAX:
        raise ProtocolViolationError(f"digest challenge has {len(challenge)} bytes, at most {CHALLENGE_BYTES_MAX}")
    try:
        text = challenge.decode()
    except UnicodeDecodeError as error:
        raise ProtocolViolationError("digest challenge is no text") from error
    directives: dict[str, str] = {}
    position = 0
    while position < len(text):
        name, separator, _rest = text[position:].partition("=")
        position += len(name) + 1
        name = name.strip(" \t\r\n,").lower()
        if not separator or not name or name in directives:
            raise ProtocolViolationError("digest challenge is malformed or names a directive twice")
        directives[name], position = _value(text, position)
    return directives


def _value(text: str, position: int) -> tuple[str, int]:
    """Read a value and give where the next directive may begin."""
    if not text.startswith('"', position):
        end = text.find(",", position)
        end = len(text) if end < 0 else end
        return text[position:end].strip(), end + 1
    value: list[str] = []
    position += 1
    while position < len(text) and text[position] != '"':
        if text[position] == "\\":
            position += 1
        value.append(text[position : position + 1])
        position += 1
    if position >= len(text):
        raise ProtocolViolationError("digest challenge has a quotation without an end")
    return "".join(value), position + 1


def _required(directives: Mapping[str, str], name: str) -> str:
    if not directives.get(name):
        raise ProtocolViolationError(f"digest challenge has no {name}")
    return directives[name]


def _choose_protection(offered: str, wanted: Sequence[Protection]) -> Protection:
    names = {name.strip() for name in offered.split(",")}
    for protection in wanted:
        if protection.sasl_name in names:
            return protection
    raise AuthenticationError(
        f"the server's protections are {offered[:64]}, hadoop.rpc.protection here allows "
        f"{', '.join(protection.hadoop_name for protection in wanted)}"
    )


def _choose_cipher(directives: Mapping[str, str]) -> str:
    offered = {name.strip() for name in directives.get("cipher", "").split(",")}
    for cipher in CIPHER_KEY_BYTES:
        if cipher in offered:
            return cipher
    raise AuthenticationError(f"the server's ciphers are {', '.join(sorted(offered))[:64]}; RC4 is needed for privacy")


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _mac(key: bytes, sequence: bytes, message: bytes) -> bytes:
    return hmac.new(key, sequence + message, lambda: hashlib.md5(usedforsecurity=False)).digest()[:MAC_BYTES]
