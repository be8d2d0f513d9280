# SPDX-License-Identifier: Apache-2.0
"""Run the GSSAPI exchange with a made-up library."""

from __future__ import annotations

import pytest

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import errors, security
from yarn_copilot.hadoop.sasl.kerberos import PLAIN_BYTES_MAX, KerberosAuthenticator
from yarn_copilot.hadoop.sasl.messages import Auth
from yarn_copilot.hadoop.sasl.negotiation import Established
from yarn_copilot.hadoop.sasl.principals import Principal, ServerPrincipals, user_of_principal
from yarn_copilot.hadoop.sasl.protection import Protection, parse_protections

OFFER = Auth("KERBEROS", "GSSAPI", "rm", "host.example")
SERVERS = ServerPrincipals(principal=Principal.parse("rm/_HOST@EXAMPLE"))


class Library:
    """Complete after the server's first token; sign by a mark in front."""

    lifetime_seconds = 100.0

    def __init__(self) -> None:
        self.is_complete = False

    def step(self, token: bytes | None) -> bytes:
        self.is_complete = token is not None
        return b"" if token else b"ticket"

    def wrap(self, message: bytes, *, encrypt: bool) -> bytes:
        return (b"E" if encrypt else b"S") + message

    def unwrap(self, token: bytes, *, must_be_encrypted: bool) -> bytes:
        return token[1:]


def finish(offer_bits: int, *protections: Protection, limit: int = 65_536) -> tuple[bytes, Established]:
    """Run an exchange up to its end; give the client's last token and the result."""
    way = KerberosAuthenticator(
        servers=SERVERS, host="HOST.example.", protections=protections, open_context=lambda _server: Library()
    )
    exchange = way.begin(OFFER)
    assert next(exchange) == b"ticket"
    assert exchange.send(b"reply") == b""
    choice = exchange.send(b"S" + bytes((offer_bits,)) + limit.to_bytes(3, "big"))
    with pytest.raises(StopIteration) as end:
        exchange.send(None)
    established: Established = end.value.value
    return choice, established


@pytest.mark.parametrize(
    ("bits", "wanted", "chosen"),
    [
        (7, (Protection.PRIVACY,), Protection.PRIVACY),
        (7, (Protection.INTEGRITY, Protection.PRIVACY), Protection.INTEGRITY),
        (4, (Protection.AUTHENTICATION, Protection.PRIVACY), Protection.PRIVACY),
        (1, (Protection.AUTHENTICATION,), Protection.AUTHENTICATION),
    ],
)
def test_first_wanted_protection_that_is_offered_is_chosen(
    bits: int, wanted: tuple[Protection, ...], chosen: Protection
) -> None:
    choice, established = finish(bits, *wanted)
    own_limit = "000000" if chosen is Protection.AUTHENTICATION else "ffffff"
    assert choice.hex() == b"S".hex() + f"{chosen.layer_bit:02x}" + own_limit
    assert (established.layer is None) is (chosen is Protection.AUTHENTICATION)
    assert established.lifetime_seconds == 100.0


def test_privacy_encrypts_and_integrity_signs() -> None:
    for protection, mark in ((Protection.PRIVACY, b"E"), (Protection.INTEGRITY, b"S")):
        layer = finish(7, protection)[1].layer
        assert layer is not None
        assert layer.wrap(b"text") == mark + b"text"
        assert layer.unwrap(b"Etext") == b"text"


@pytest.mark.parametrize(("limit", "plain"), [(0, PLAIN_BYTES_MAX), (10_000, 9_488), (16_777_215, PLAIN_BYTES_MAX)])
def test_servers_limit_is_kept(limit: int, plain: int) -> None:
    layer = finish(2, Protection.INTEGRITY, limit=limit)[1].layer
    assert layer is not None
    assert layer.max_plain_bytes == plain


def test_protections_without_overlap_are_named() -> None:
    with pytest.raises(errors.AuthenticationError, match="is privacy, here it is authentication"):
        finish(4, Protection.AUTHENTICATION)


@pytest.mark.parametrize("offer", [b"", b"S123", b"S12345"])
def test_list_of_protections_of_another_length_is_a_violation(offer: bytes) -> None:
    way = KerberosAuthenticator(
        servers=SERVERS, host="host.example", protections=(), open_context=lambda _server: Library()
    )
    exchange = way.begin(OFFER)
    next(exchange)
    exchange.send(b"reply")
    with pytest.raises(errors.ProtocolViolationError, match="list of protections"):
        exchange.send(offer)


@pytest.mark.parametrize(
    ("principal", "pattern", "host", "is_accepted"),
    [
        ("rm/_HOST@EXAMPLE", "", "host.example", True),
        ("rm/_HOST@EXAMPLE", "", "HOST.EXAMPLE.", True),
        ("rm/_HOST@EXAMPLE", "", "other.example", False),
        ("rm/host.example@EXAMPLE", "", "anything", True),
        ("hdfs/_HOST@EXAMPLE", "", "host.example", False),
        ("hdfs/_HOST@EXAMPLE", "rm/*@EXAMPLE", "other", True),
        ("rm/_HOST@EXAMPLE", "rm/host?.example@EXAMPLE", "host.example", False),
        (None, "rm/*", "host.example", True),
        (None, "", "host.example", False),
        ("rm/_HOST@EXAMPLE", "rm/{a,b}@EXAMPLE", "host.example", False),
        ("rm/_HOST@EXAMPLE", "{rm,yarn}/{host,other}.example@*", "host.example", True),
        (None, "rm/*@EXAMPLE", "host.example", True),
        (None, "hdfs/*@EXAMPLE", "host.example", False),
        ("rm/_HOST@EXAMPLE", "rm/*@OTHER", "host.example", False),
        ("rm/_HOST@EXAMPLE", "rm/{host.example", "host.example", False),
    ],
)
def test_server_is_checked_against_principal_or_pattern(
    principal: str | None, pattern: str, host: str, is_accepted: bool
) -> None:
    servers = ServerPrincipals(principal=Principal.parse(principal) if principal else None, pattern=pattern)
    if is_accepted:
        accepted = servers.accept(OFFER, host)
        assert (accepted.name, accepted.instance) == ("rm", "host.example")
    else:
        with pytest.raises(errors.ServerIdentityError):
            servers.accept(OFFER, host)


@pytest.mark.parametrize("text", ["rm", "rm/host", "rm@REALM", "rm/host@REALM"])
def test_principal_is_written_as_it_was_read(text: str) -> None:
    assert str(Principal.parse(f" {text} ")) == text


@pytest.mark.parametrize("text", ["", "/host", "a/b/c", "a@", "a@b@c", "a/@b"])
def test_malformed_principal_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no Kerberos principal"):
        Principal.parse(text)


def test_user_of_a_principal_is_its_first_part_in_the_own_realm() -> None:
    assert user_of_principal(Principal.parse("yarn/host@EXAMPLE"), default_realm="EXAMPLE") == "yarn"
    assert user_of_principal(Principal.parse("alice"), default_realm="EXAMPLE") == "alice"
    with pytest.raises(ConfigError, match="auth_to_local"):
        user_of_principal(Principal.parse("alice@OTHER"), default_realm="EXAMPLE")


def test_protections_are_read_in_order_without_repeats() -> None:
    assert parse_protections(" Privacy, authentication,privacy ") == (Protection.PRIVACY, Protection.AUTHENTICATION)
    for wrong in ("", "auth", "privacy;integrity"):
        with pytest.raises(ConfigError, match=r"hadoop\.rpc\.protection"):
            parse_protections(wrong)


def test_security_is_read_from_properties() -> None:
    read = security.read_security(
        {
            "hadoop.security.authentication": "Kerberos",
            "hadoop.rpc.protection": "privacy",
            "yarn.resourcemanager.principal": "rm/_HOST@EXAMPLE",
            "ipc.client.fallback-to-simple-auth-allowed": "true",
        }
    )
    assert read.method is security.AuthenticationMethod.KERBEROS
    assert (read.protections, read.fallback_to_simple) == ((Protection.PRIVACY,), True)
    assert read.servers == SERVERS
    assert security.read_security({}) == security.ClusterSecurity()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hadoop.security.authentication", "token"),
        ("hadoop.rpc.protection", "none"),
        ("yarn.resourcemanager.principal", "rm"),
        ("yarn.resourcemanager.principal", "a/b/c"),
        ("ipc.client.fallback-to-simple-auth-allowed", "yes"),
    ],
)
def test_bad_property_is_named(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        security.read_security({key: value})
