# SPDX-License-Identifier: Apache-2.0
"""Feed framing, SASL messages and response headers with anything at all: only errors of ours, bounded memory.

A bounded run belongs to the unit tests; `make fuzz` runs the same with many more examples (FUZZ_EXAMPLES).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.embedded.yarn import wire
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.codec import ProtectedCodec
from yarn_copilot.hadoop.proto import rpc_pb2
from yarn_copilot.hadoop.sasl import messages
from yarn_copilot.hadoop.sasl.digest_md5 import DigestAuthenticator, DigestLayer, parse_challenge
from yarn_copilot.hadoop.sasl.negotiation import Negotiation
from yarn_copilot.hadoop.sasl.principals import Principal
from yarn_copilot.hadoop.sasl.tokens import parse_token

fuzz = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
LIMIT = 4096
CHUNKS = st.lists(st.binary(max_size=64), max_size=40)

auths = st.builds(
    lambda method, mechanism, protocol, challenge: rpc_pb2.RpcSasl.Auth(
        method=method, mechanism=mechanism, protocol=protocol, server_id="default", challenge=challenge
    ),
    st.sampled_from(["TOKEN", "KERBEROS", "SIMPLE", ""]) | st.text(max_size=5),
    st.sampled_from(["DIGEST-MD5", "GSSAPI", ""]),
    st.text(max_size=5),
    st.none() | st.binary(max_size=60) | st.just(b'realm="default",nonce="n",qop="auth,auth-int"'),
)
sasl_messages = st.builds(
    lambda state, token, offers: rpc_pb2.RpcSasl(state=state, token=token, auths=offers),
    st.sampled_from(list(rpc_pb2.RpcSasl.State.values())),
    st.none() | st.binary(max_size=60) | st.just(b'nonce="n",qop="auth"') | st.just(b"rspauth=0"),
    st.lists(auths, max_size=4),
)
responses = st.builds(
    lambda call_id, status, body, name: _response(call_id, status, body, name),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 2),
    st.binary(max_size=60),
    st.text(max_size=10),
)


def _response(call_id: int, status: int, body: bytes, name: str) -> bytes:
    request = wire.Request(call_id, b"c", 0)
    return wire.success(request, body) if status == 0 else wire.failure(request, name, name, is_fatal=status == 2)


def drain(receive: Callable[[bytes], object], chunks: list[bytes]) -> None:
    """Give chunks until one is refused."""
    with contextlib.suppress(errors.HadoopRPCError):
        for chunk in chunks:
            list(receive(chunk))  # type: ignore[call-overload]


@fuzz
@given(CHUNKS)
def test_any_bytes_are_responses_or_an_error_and_never_held_beyond_the_limit(chunks: list[bytes]) -> None:
    decoder = framing.ResponseDecoder(max_frame_bytes=LIMIT)
    drain(decoder.receive, chunks)
    assert decoder.buffered_bytes <= LIMIT + framing.LENGTH_BYTES + 64


@fuzz
@given(st.lists(responses, max_size=5), st.integers(0, 400), st.integers(0, 255), st.integers(1, 50))
def test_responses_with_one_changed_byte_are_responses_or_an_error(
    frames: list[bytes], position: int, value: int, chunk_bytes: int
) -> None:
    data = bytearray(b"".join(frames))
    if data:
        data[position % len(data)] = value
    drain(
        framing.ResponseDecoder(max_frame_bytes=LIMIT).receive,
        [bytes(data[start : start + chunk_bytes]) for start in range(0, len(data), chunk_bytes)],
    )


@fuzz
@given(st.lists(responses, max_size=5), st.integers(1, 50))
def test_responses_come_out_as_they_went_in_however_they_are_cut(frames: list[bytes], chunk_bytes: int) -> None:
    data = b"".join(frames)
    decoder = framing.ResponseDecoder(max_frame_bytes=LIMIT)
    found = [
        response
        for start in range(0, len(data), chunk_bytes)
        for response in decoder.receive(data[start : start + chunk_bytes])
    ]
    decoder.end()
    assert len(found) == len(frames)


@fuzz
@given(st.binary(max_size=200))
def test_any_frame_is_a_response_or_a_violation(frame: bytes) -> None:
    with contextlib.suppress(errors.ProtocolViolationError):
        framing.decode_response(frame)


@fuzz
@given(st.binary(max_size=200))
def test_any_body_is_a_sasl_message_or_a_violation(body: bytes) -> None:
    with contextlib.suppress(errors.ProtocolViolationError):
        messages.decode(framing.Response(framing.CALL_ID_SASL, framing.Status.SUCCESS, body))


@fuzz
@given(st.lists(sasl_messages, max_size=20), st.booleans())
def test_any_conversation_ends_with_an_outcome_or_an_error(said: list[rpc_pb2.RpcSasl], allow_simple: bool) -> None:
    way = DigestAuthenticator(identifier=b"i", password=b"p", make_nonce=lambda: "n")
    negotiation = Negotiation([way], allow_simple=allow_simple)
    negotiation.start()
    with contextlib.suppress(errors.AuthenticationError, errors.ProtocolViolationError):
        for message in said:
            body = message.SerializePartialToString()
            negotiation.receive(messages.decode(framing.Response(framing.CALL_ID_SASL, framing.Status.SUCCESS, body)))
    # Nobody here knows the secret: the only way in is the one that was allowed.
    assert negotiation.outcome is None or (allow_simple and negotiation.outcome.method == "SIMPLE")


@fuzz
@given(CHUNKS, st.lists(st.binary(max_size=60), max_size=5))
def test_protected_stream_gives_nothing_that_was_not_signed(chunks: list[bytes], tokens: list[bytes]) -> None:
    layer = DigestLayer(sending_key=b"a" * 16, receiving_key=b"b" * 16)
    codec = ProtectedCodec(layer, max_frame_bytes=LIMIT)
    forged = [wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.WRAP, token=token)) for token in tokens]
    with contextlib.suppress(errors.HadoopRPCError):
        for chunk in (*forged, *chunks):
            assert all(response.status is framing.Status.FATAL for response in codec.receive(chunk))


@fuzz
@given(st.binary(max_size=300))
def test_any_challenge_is_read_or_a_violation(challenge: bytes) -> None:
    with contextlib.suppress(errors.ProtocolViolationError):
        parse_challenge(challenge)


@fuzz
@given(st.text(alphabet='realm=",\\ nonceqp', max_size=80))
def test_any_text_like_a_challenge_is_read_or_a_violation(text: str) -> None:
    with contextlib.suppress(errors.ProtocolViolationError):
        parse_challenge(text.encode())


@pytest.mark.parametrize("parse", [parse_token, Principal.parse], ids=["token", "principal"])
@fuzz
@given(text=st.text(max_size=100) | st.text(alphabet="AQgw-_=/@", max_size=60))
def test_any_text_is_read_or_a_configuration_error(parse: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text)
