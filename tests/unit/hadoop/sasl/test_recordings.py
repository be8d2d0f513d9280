# SPDX-License-Identifier: Apache-2.0
"""Replay what real ResourceManagers said: every byte this side sends is the recorded one."""

from __future__ import annotations

import re

import pytest

from tests.unit.hadoop.sasl.recordings import NAMES, RecordedContext, load, replay, stream
from yarn_copilot.hadoop import framing, versions
from yarn_copilot.hadoop.codec import Codec, PlainCodec, ProtectedCodec
from yarn_copilot.hadoop.sasl.digest_md5 import DigestAuthenticator
from yarn_copilot.hadoop.sasl.kerberos import KerberosAuthenticator
from yarn_copilot.hadoop.sasl.negotiation import Authenticator, Negotiation
from yarn_copilot.hadoop.sasl.principals import Principal, ServerPrincipals
from yarn_copilot.hadoop.sasl.protection import Protection, parse_protections

HEADER = framing.connection_header(authentication=framing.AUTHENTICATION_SASL)


def authenticator_of(recording: dict[str, object]) -> Authenticator:
    """Be the client that was recorded."""
    protections = parse_protections(str(recording["protection"]))
    if "library" in recording:
        notes = recording["library"]
        assert isinstance(notes, list)
        return KerberosAuthenticator(
            servers=ServerPrincipals(principal=Principal.parse("rm/_HOST@LAB.INTERNAL")),
            host="localhost",
            protections=protections,
            open_context=lambda _server: RecordedContext(notes),
        )
    nonces = re.findall(rb'cnonce="([^"]+)"', stream(recording, "client"))
    return DigestAuthenticator(
        identifier=bytes.fromhex(str(recording["identifier"])),
        password=bytes.fromhex(str(recording["password"])),
        protections=protections,
        make_nonce=lambda: nonces[0].decode(),
    )


def test_every_tested_version_was_recorded_with_every_protection() -> None:
    kinds = [f"{method}-{protection.hadoop_name}" for method in ("kerberos", "token") for protection in Protection]
    assert sorted(NAMES) == sorted(f"{version}-{kind}" for version in versions.TESTED for kind in kinds)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_conversation_is_repeated_byte_by_byte(name: str) -> None:
    recording = load(name)
    outcome, sent, rest = replay(Negotiation([authenticator_of(recording)]), recording)
    assert outcome.method == name.split("-")[1].upper()
    assert stream(recording, "client").startswith(HEADER + sent)
    layer = outcome.established.layer
    assert (layer is None) is (recording["protection"] == "authentication")
    codec: Codec = PlainCodec(max_frame_bytes=1_000_000)
    if layer is not None:
        codec = ProtectedCodec(layer, max_frame_bytes=1_000_000)
        codec.encode(b"\x00\x00\x00\x00 the recorded call, whose client id was random")
    (answer,) = codec.receive(rest)
    codec.end()
    assert answer.body == bytes.fromhex(recording["answer"])
