# SPDX-License-Identifier: Apache-2.0
"""Check DIGEST-MD5 against the example of RFC 2831, and its layers against tampering."""

from __future__ import annotations

import pytest

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.sasl import digest_md5
from yarn_copilot.hadoop.sasl.digest_md5 import DigestAuthenticator, DigestLayer, parse_challenge
from yarn_copilot.hadoop.sasl.messages import Auth
from yarn_copilot.hadoop.sasl.protection import Protection
from yarn_copilot.hadoop.sasl.rc4 import RC4


def test_example_of_the_rfc_gives_its_response_and_proof() -> None:
    # RFC 2831 section 4: user chris, password secret, IMAP at elwood.innosoft.com.
    session = digest_md5._Session(
        user="chris",
        password="secret",
        realm="elwood.innosoft.com",
        digest_uri="imap/elwood.innosoft.com",
        nonce="OA6MG9tEQGm2hh",
        client_nonce="OA6MHXh6VqTrRk",
        protection=Protection.AUTHENTICATION,
    )
    assert b"response=d388dad90d4bbd760a152321f2143af7" in session.response(None)
    assert session.server_proof() == "ea40f60335c427b5527b84dbabcdfffd"


@pytest.mark.parametrize(
    ("key", "plain", "encrypted"),
    [
        ("Key", "Plaintext", "bbf316e8d940af0ad3"),
        ("Wiki", "pedia", "1021bf0420"),
        ("Secret", "Attack at dawn", "45a01f645fc35b383552544b9bf5"),
    ],
)
def test_cipher_gives_the_known_texts(key: str, plain: str, encrypted: str) -> None:
    assert RC4(key.encode()).apply(plain.encode()).hex() == encrypted


def layers(*, encrypted: bool) -> tuple[DigestLayer, DigestLayer]:
    """Give the two ends of one session."""

    def ciphers(first: bytes, second: bytes) -> tuple[RC4, RC4] | None:
        return (RC4(first), RC4(second)) if encrypted else None

    return (
        DigestLayer(sending_key=b"a" * 16, receiving_key=b"b" * 16, ciphers=ciphers(b"c" * 16, b"d" * 16)),
        DigestLayer(sending_key=b"b" * 16, receiving_key=b"a" * 16, ciphers=ciphers(b"d" * 16, b"c" * 16)),
    )


@pytest.mark.parametrize("encrypted", [True, False])
def test_layer_carries_messages_in_order_both_ways(encrypted: bool) -> None:
    here, there = layers(encrypted=encrypted)
    for message in (b"", b"one", b"x" * 60_000):
        assert there.unwrap(here.wrap(message)) == message
        assert here.unwrap(there.wrap(message)) == message


def test_encrypted_message_does_not_show_its_text() -> None:
    here, _there = layers(encrypted=True)
    assert b"confidential" not in here.wrap(b"confidential" * 4)


@pytest.mark.parametrize("position", [0, 3, 8, 18, 19, 23])
@pytest.mark.parametrize("encrypted", [True, False])
def test_altered_message_is_refused(encrypted: bool, position: int) -> None:
    here, there = layers(encrypted=encrypted)
    token = bytearray(here.wrap(b"12345678"))
    token[position] ^= 1
    with pytest.raises(errors.AuthenticationError, match="altered"):
        there.unwrap(bytes(token))


def test_repeated_and_missing_messages_are_refused() -> None:
    here, there = layers(encrypted=False)
    first, _second, third = here.wrap(b"1"), here.wrap(b"2"), here.wrap(b"3")
    there.unwrap(first)
    for token in (first, third, b"short"):
        with pytest.raises(errors.AuthenticationError):
            there.unwrap(token)


@pytest.mark.parametrize(
    ("text", "directives"),
    [
        ('realm="default",nonce="a==",qop="auth"', {"realm": "default", "nonce": "a==", "qop": "auth"}),
        ('nonce="with \\"quote\\" and , comma",stale=true', {"nonce": 'with "quote" and , comma', "stale": "true"}),
        ("charset=utf-8, algorithm=md5-sess", {"charset": "utf-8", "algorithm": "md5-sess"}),
        ("", {}),
    ],
)
def test_challenge_is_read(text: str, directives: dict[str, str]) -> None:
    assert parse_challenge(text.encode()) == directives


@pytest.mark.parametrize(
    "challenge", [b'nonce="open', b"nonce", b"=x", b"a=1,a=2", b"\xff\xfe=1", b"a=" + b"x" * 2048, b'nonce="a\\']
)
def test_malformed_challenge_is_a_violation(challenge: bytes) -> None:
    with pytest.raises(errors.ProtocolViolationError):
        parse_challenge(challenge)


def test_challenge_without_nonce_is_a_violation() -> None:
    way = DigestAuthenticator(identifier=b"i", password=b"p")
    with pytest.raises(errors.ProtocolViolationError, match="nonce"):
        next(way.begin(Auth("TOKEN", "DIGEST-MD5", "", "default", b'realm="default"')))


@pytest.mark.parametrize("proof", [b"", b"rspauth=0", "rspauth=\u00e9".encode()], ids=["none", "wrong", "no ASCII"])
def test_server_that_does_not_know_the_secret_is_refused(proof: bytes) -> None:
    auth = Auth(method="TOKEN", mechanism="DIGEST-MD5", protocol="", server_id="default", challenge=b'nonce="n"')
    exchange = DigestAuthenticator(identifier=b"i", password=b"p", make_nonce=lambda: "n")._exchange(auth)
    next(exchange)
    with pytest.raises(errors.ServerIdentityError, match="did not prove"):
        exchange.send(proof)


def test_secrets_are_not_shown() -> None:
    way = DigestAuthenticator(identifier=b"i", password=b"hidden")
    assert "hidden" not in repr(way)
