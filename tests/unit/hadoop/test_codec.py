# SPDX-License-Identifier: Apache-2.0
"""Carry frames through a security layer, cut and merged in every way."""

from __future__ import annotations

import pytest

from lab.embedded.yarn import wire
from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.codec import PlainCodec, ProtectedCodec
from yarn_copilot.hadoop.proto import rpc_pb2

LIMIT = 100_000


class Marked:
    """Put a mark in front of every message, and take no long ones."""

    max_plain_bytes = 10

    def wrap(self, message: bytes) -> bytes:
        assert len(message) <= self.max_plain_bytes
        return b"#" + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"#"):
            raise errors.AuthenticationError("altered")
        return token[1:]


def answers(count: int) -> bytes:
    """Write answers to the calls 0, 1, ... as a server does."""
    return b"".join(wire.success(wire.Request(number, b"c", 0), b"body %d" % number) for number in range(count))


def wrapped(plain: bytes, piece_bytes: int) -> bytes:
    """Cut a stream into protected messages of one size."""
    pieces = [plain[start : start + piece_bytes] for start in range(0, len(plain), piece_bytes)]
    return b"".join(wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.WRAP, token=b"#" + piece)) for piece in pieces)


@pytest.mark.parametrize("piece_bytes", [1, 3, 7, 40, 10_000], ids=lambda size: f"pieces of {size}")
@pytest.mark.parametrize("chunk_bytes", [1, 5, 1000], ids=lambda size: f"chunks of {size}")
def test_answers_come_out_whole_however_they_are_cut_or_merged(piece_bytes: int, chunk_bytes: int) -> None:
    codec = ProtectedCodec(Marked(), max_frame_bytes=LIMIT)
    data = wrapped(answers(5), piece_bytes)
    found = [
        response
        for start in range(0, len(data), chunk_bytes)
        for response in codec.receive(data[start : start + chunk_bytes])
    ]
    codec.end()
    assert [(one.call_id, one.body) for one in found] == [(number, b"body %d" % number) for number in range(5)]


def test_long_frames_are_sent_in_pieces_that_the_peer_takes() -> None:
    frames = b"0123456789" * 3 + b"rest"
    sent = ProtectedCodec(Marked(), max_frame_bytes=LIMIT).encode(frames)
    opened = b""
    while sent:
        length = int.from_bytes(sent[:4], "big")
        opened += wire.read_sasl(sent[4 : 4 + length]).token[1:]
        sent = sent[4 + length :]
    assert opened == frames


def test_plain_codec_changes_nothing() -> None:
    codec = PlainCodec(max_frame_bytes=LIMIT)
    assert codec.encode(b"frame") == b"frame"
    assert len(list(codec.receive(answers(2)))) == 2
    codec.end()


def test_refusal_that_ends_the_connection_may_come_unprotected() -> None:
    codec = ProtectedCodec(Marked(), max_frame_bytes=LIMIT)
    fatal = wire.failure(wire.Request(-1, b"", -1), "java.io.IOException", "no", is_fatal=True)
    (response,) = codec.receive(fatal)
    assert response.status is framing.Status.FATAL


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(answers(1), errors.ProtocolViolationError, id="unprotected answer"),
        pytest.param(
            wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.SUCCESS, token=b"#")),
            errors.ProtocolViolationError,
            id="another state",
        ),
        pytest.param(
            wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.WRAP)), errors.ProtocolViolationError, id="no token"
        ),
        pytest.param(
            wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.WRAP, token=b"x")), errors.AuthenticationError, id="altered"
        ),
        pytest.param(wrapped(b"\x7f\xff\xff\xff", 4), errors.FrameTooLargeError, id="huge frame inside"),
        pytest.param(b"\x00\xff\xff\xff", errors.FrameTooLargeError, id="huge frame outside"),
    ],
)
def test_what_a_server_may_not_send_is_refused(data: bytes, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        list(ProtectedCodec(Marked(), max_frame_bytes=LIMIT).receive(data))


@pytest.mark.parametrize("cut", [1, 30])
def test_end_inside_a_frame_is_noticed(cut: int) -> None:
    codec = ProtectedCodec(Marked(), max_frame_bytes=LIMIT)
    data = wrapped(answers(1), 10)
    list(codec.receive(data[:cut]))
    with pytest.raises(errors.TruncatedFrameError):
        codec.end()
