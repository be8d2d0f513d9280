# SPDX-License-Identifier: Apache-2.0
"""Be the server's side of SASL with delegation tokens (DIGEST-MD5); written apart from the product's side.

Source: SaslRpcServer of Hadoop 3.5.0 and RFC 2831. Kerberos is played by real servers alone (`lab/hadoop/kdc.py`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab.embedded.yarn import wire
from yarn_copilot.hadoop.proto import rpc_pb2

INVALID_TOKEN = "org.apache.hadoop.security.token.SecretManager$InvalidToken"  # noqa: S105  (a Java class)
ACCESS_CONTROL = "org.apache.hadoop.security.AccessControlException"
REALM = "default"
NONCE = "bm9uY2Utb2YtdGhlLXNlcnZlcg=="


@dataclass(slots=True)
class Session:
    """Hold what a handshake agreed on: the user, the layer, and in how many pieces answers are cut."""

    user: str
    layer: DigestServerLayer | None = None
    pieces: int = 1


@dataclass(slots=True, kw_only=True)
class Authentication:
    """Say what connections must prove.

    Attributes:
        tokens: identifier to password and owner; without tokens the server asks nobody who he is.
        qops: protections offered: auth, auth-int, auth-conf.
        ciphers: ciphers offered for auth-conf.
        sends_challenge: the first challenge comes with the offer; otherwise it has to be asked for.
        proves_itself: the last message carries the server's proof.
        pieces: messages that one answer is cut into.
    """

    tokens: dict[bytes, tuple[bytes, str]] = field(default_factory=dict)
    qops: tuple[str, ...] = ("auth",)
    ciphers: str = "3des,rc4"
    sends_challenge: bool = True
    proves_itself: bool = True
    pieces: int = 1

    def begin(self) -> Exchange:
        """Start with a new connection."""
        return Exchange(self)

    def refuse_simple(self) -> bytes:
        """Answer a client that does not begin with SASL."""
        text = "SIMPLE authentication is not enabled.  Available:[TOKEN]"
        return wire.failure(wire.Request(-1, b"", -1), ACCESS_CONTROL, text, is_fatal=True)

    def challenge(self) -> bytes:
        """Write the challenge; the nonce is always the same, so that bytes can be compared."""
        text = f'realm="{REALM}",nonce="{NONCE}",qop="{",".join(self.qops)}",charset=utf-8,algorithm=md5-sess'
        return (text + (f',cipher="{self.ciphers}"' if "auth-conf" in self.qops else "")).encode()


class Exchange:
    """Be one handshake; `session` is there when it has succeeded."""

    def __init__(self, authentication: Authentication) -> None:
        """Wait for NEGOTIATE."""
        self._authentication = authentication
        self.session: Session | None = None
        self.is_refused = False

    def receive(self, message: rpc_pb2.RpcSasl) -> bytes:
        """Take a client's message and give the answer."""
        states = rpc_pb2.RpcSasl
        if message.state == states.NEGOTIATE:
            if not self._authentication.tokens:
                self.session = Session("")
                return wire.sasl(rpc_pb2.RpcSasl(state=states.SUCCESS))
            return wire.sasl(self._offer())
        if message.state == states.INITIATE:
            chosen = [(auth.method, auth.mechanism) for auth in message.auths]
            if chosen != [("TOKEN", "DIGEST-MD5")] or message.auths[0].HasField("challenge"):
                return self._refuse(ACCESS_CONTROL, "the chosen way was not offered")
            if not message.token:
                return wire.sasl(rpc_pb2.RpcSasl(state=states.CHALLENGE, token=self._authentication.challenge()))
        return self._check(message.token.decode())

    def _offer(self) -> rpc_pb2.RpcSasl:
        message = rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.NEGOTIATE)
        auth = message.auths.add(method="TOKEN", mechanism="DIGEST-MD5", protocol="", server_id=REALM)
        if self._authentication.sends_challenge:
            auth.challenge = self._authentication.challenge()
        message.auths.add(method="KERBEROS", mechanism="GSSAPI", protocol="rm", server_id="localhost")
        return message

    def _check(self, response: str) -> bytes:
        given = {
            name: quoted or plain for name, quoted, plain in re.findall(r'([\w-]+)=(?:"([^"]*)"|([^,]*))', response)
        }
        password, owner = self._authentication.tokens.get(base64.b64decode(given["username"]), (b"", ""))
        secret = _h1(given, base64.b64encode(password).decode())
        good = _proof(given, secret, "AUTHENTICATE") == given["response"] and given["qop"] in self._authentication.qops
        if not owner or not good or given["nonce"] != NONCE:
            return self._refuse(INVALID_TOKEN, "token can't be found in cache")
        layer = None if given["qop"] == "auth" else DigestServerLayer(secret, given.get("cipher"))
        self.session = Session(owner, layer, self._authentication.pieces)
        success = rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.SUCCESS)
        if self._authentication.proves_itself:
            success.token = f"rspauth={_proof(given, secret, '')}".encode()
        return wire.sasl(success)

    def _refuse(self, class_name: str, text: str) -> bytes:
        self.is_refused = True
        return wire.failure(wire.Request(-1, b"", -1), class_name, text, is_fatal=True)


class DigestServerLayer:
    """Protect messages of a session from the server's side."""

    def __init__(self, secret: bytes, cipher: str | None) -> None:
        """Derive the keys of both directions."""
        self._keys = [
            _md5(secret + f"Digest session key to {way} signing key magic constant".encode()) for way in _WAYS
        ]
        self._streams = None
        if cipher is not None:
            part = secret[: {"rc4": 16, "rc4-56": 7, "rc4-40": 5}[cipher]]
            self._streams = [
                _key_stream(_md5(part + f"Digest H(A1) to {way} sealing key magic constant".encode())) for way in _WAYS
            ]
        self._numbers = [0, 0]

    def wrap(self, message: bytes) -> bytes:
        """Protect an answer."""
        number = self._next(1)
        return self._crypt(1, message + self._sign(1, number, message)) + b"\x00\x01" + number

    def unwrap(self, token: bytes) -> bytes:
        """Open a request; OSError where it was altered."""
        number = self._next(0)
        opened = self._crypt(0, token[:-6])
        if token[-6:] != b"\x00\x01" + number or opened[-10:] != self._sign(0, number, opened[:-10]):
            raise OSError("a protected message was altered")
        return opened[:-10]

    def _next(self, way: int) -> bytes:
        self._numbers[way] += 1
        return (self._numbers[way] - 1).to_bytes(4, "big")

    def _sign(self, way: int, number: bytes, message: bytes) -> bytes:
        return hmac.new(self._keys[way], number + message, hashlib.md5).digest()[:10]

    def _crypt(self, way: int, data: bytes) -> bytes:
        if self._streams is None:
            return data
        return bytes(byte ^ next(self._streams[way]) for byte in data)


_WAYS = ("client-to-server", "server-to-client")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _h1(given: dict[str, str], password: str) -> bytes:
    inner = _md5(":".join((given["username"], given["realm"], password)).encode())
    return _md5(b":".join((inner, given["nonce"].encode(), given["cnonce"].encode())))


def _proof(given: dict[str, str], secret: bytes, method: str) -> str:
    a2 = f"{method}:{given['digest-uri']}" + ("" if given["qop"] == "auth" else ":" + 32 * "0")
    joined = ":".join(
        (secret.hex(), given["nonce"], given["nc"], given["cnonce"], given["qop"], _md5(a2.encode()).hex())
    )
    return _md5(joined.encode()).hex()


def _key_stream(key: bytes) -> Iterator[int]:
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    i = j = 0
    while True:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        yield box[(box[i] + box[j]) % 256]
